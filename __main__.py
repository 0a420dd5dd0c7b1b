"""The stack on one page: read the stage's configuration, build its components, check them together, export."""

import pulumi

from infra.api import build_api
from infra.config import placeholders, stage_config
from infra.foundation import build_foundation
from infra.monitoring import build_operations
from infra.queues import build_consumers, build_queues
from infra.rules.gate import record_resources, refuse_violations
from infra.schedules import build_schedule_group, build_schedules

config = stage_config()
for sentence in placeholders(config):
    pulumi.log.warn(sentence)
declared = record_resources()

foundation = build_foundation(config)
pairs = build_queues(config, foundation)
consumers = build_consumers(config, foundation, pairs)
schedules = build_schedule_group(config)
jobs = build_schedules(config, foundation, pairs, schedules)
api = build_api(config, foundation, pairs)
operator = build_operations(config, foundation, pairs, consumers, jobs, api, schedules.name)

refuse_violations(declared, config)

for pair in pairs.values():
    pulumi.export(pair.spec.output, pair.queue.url)
    pulumi.export(pair.spec.dlq_output, pair.dlq.url)
for job in jobs.values():
    pulumi.export(job.spec.dlq_output, job.dlq.url)
pulumi.export("functions", {name: consumer.consumer.function.name for name, consumer in consumers.items()})
pulumi.export("jobs", {name: job.job.function.name for name, job in jobs.items()})
pulumi.export("mappings", {name: consumer.mapping.uuid for name, consumer in consumers.items()})
pulumi.export("secretArns", foundation.secrets.arns)
pulumi.export("alarmTopicArn", foundation.topic.arn)
pulumi.export("operatorRoleArn", operator.arn)
if api is not None:
    pulumi.export("apiRepositoryUrl", api.repository.url)
    if api.load_balancer is not None:
        pulumi.export("apiUrl", api.load_balancer.url)
