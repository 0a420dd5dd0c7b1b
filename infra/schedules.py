"""Every scheduled function of the registry."""

from collections.abc import Mapping

import pulumi_aws as aws

from api_services.function_spec import physical_name
from api_services.schedules import SCHEDULES
from infra.components.lambda_function import NAME_MAX
from infra.components.queue_pair import QueuePair
from infra.components.scheduled_function import ScheduledFunction, ScheduledFunctionArgs
from infra.config import StageConfig
from infra.foundation import Foundation
from infra.functions import function_args


def build_schedule_group(config: StageConfig) -> aws.scheduler.ScheduleGroup:
    """The group of the stage's schedules, by which CloudWatch counts their failures."""
    return aws.scheduler.ScheduleGroup("schedules", name=physical_name(config.stage, "jobs", limit=NAME_MAX))


def build_schedules(
    config: StageConfig, foundation: Foundation, pairs: Mapping[str, QueuePair], group: aws.scheduler.ScheduleGroup
) -> dict[str, ScheduledFunction]:
    """Every scheduled function of the registry, by name."""
    return {
        spec.name: ScheduledFunction(
            spec.name,
            ScheduledFunctionArgs(
                spec=spec,
                region=config.region,
                group_name=group.name,
                dlq_physical_name=spec.dlq_physical_name(config.stage),
                role_physical_name=physical_name(config.stage, f"{spec.name}-scheduler", limit=NAME_MAX),
                alarm_topic_arn=foundation.topic.arn,
                protect=config.protects(spec.name),
                function=function_args(spec, config, foundation, pairs),
            ),
        )
        for spec in SCHEDULES
    }
