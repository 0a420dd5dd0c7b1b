"""Alarms and dashboard of a stage, and the role of those whom the alarms call."""

from collections.abc import Mapping

import pulumi

from api_services.function_spec import physical_name
from api_services.secrets import MONGO_URI
from infra.access import Access
from infra.api import Api
from infra.components.lambda_function import NAME_MAX
from infra.components.monitoring import Monitoring, MonitoringArgs
from infra.components.operator_role import OperatorRole, OperatorRoleArgs
from infra.components.queue_consumer import QueueConsumer
from infra.components.queue_pair import QueuePair
from infra.components.scheduled_function import ScheduledFunction
from infra.config import StageConfig
from infra.foundation import Foundation


def build_operations(
    config: StageConfig,
    foundation: Foundation,
    pairs: Mapping[str, QueuePair],
    consumers: Mapping[str, QueueConsumer],
    jobs: Mapping[str, ScheduledFunction],
    api: Api | None,
    schedule_group: pulumi.Input[str],
) -> OperatorRole:
    """Build alarms and dashboard, and the operator's role over all of them."""
    functions = {name: consumer.consumer for name, consumer in consumers.items()}
    functions |= {name: job.job for name, job in jobs.items()}
    monitoring = Monitoring(
        "monitoring",
        MonitoringArgs(
            stage=config.stage,
            prefix=physical_name(config.stage, "").rstrip("-"),
            region=config.region,
            topic_arn=foundation.topic.arn,
            pairs=list(pairs.values()),
            functions=functions,
            schedule_group=schedule_group,
            dead_letter_alarms=[source.dlq_alarm for source in (*pairs.values(), *jobs.values())],
            load_balancer=api.load_balancer if api else None,
            service=api.service if api else None,
            dashboard=config.dashboard,
        ),
    )
    access = Access()
    foundation.secrets.grant_read(access, MONGO_URI)  # the failure store says why a message failed
    return OperatorRole(
        "operator",
        OperatorRoleArgs(
            physical_name=physical_name(config.stage, "operator", limit=NAME_MAX),
            stage=config.stage,
            region=config.region,
            principals=config.operator_principals,
            access=access,
            queues=[pair.queue for pair in pairs.values()],
            dlqs=[source.dlq for source in (*pairs.values(), *jobs.values())],
            mappings=[consumer.mapping for consumer in consumers.values()],
            functions=list(functions.values()),
            jobs=[job.job for job in jobs.values()],
            alarm_names=[
                *monitoring.alarm_names,
                *(source.dlq_alarm_name for source in (*pairs.values(), *jobs.values())),
            ],
        ),
    )
