"""The stack on one page: read the stage's configuration, build its components, export what people and tools look up."""

import pulumi

from infra.config import placeholders, stage_config
from infra.foundation import build_foundation
from infra.queues import build_consumers, build_queues

config = stage_config()
for sentence in placeholders(config):
    pulumi.log.warn(sentence)

foundation = build_foundation(config)
pairs = build_queues(config, foundation)
consumers = build_consumers(config, foundation, pairs, foundation.secrets)

for pair in pairs.values():
    pulumi.export(pair.spec.output, pair.queue.url)
    pulumi.export(pair.spec.dlq_output, pair.dlq.url)
pulumi.export("alarmTopicArn", foundation.topic.arn)
pulumi.export("secretArns", foundation.secrets.arns)
