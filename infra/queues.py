"""Every queue of the registry with its consumer."""

from collections.abc import Mapping
from typing import Final

from api_services.queues import QUEUES, physical_name
from infra.components.lambda_function import LambdaFunctionArgs
from infra.components.queue_consumer import QueueConsumer, QueueConsumerArgs
from infra.components.queue_pair import QueuePair, QueuePairArgs
from infra.components.stage_secrets import StageSecrets
from infra.config import StageConfig
from infra.foundation import Foundation
from infra.functions import package
from infra.processes import declared_access

FUNCTION_NAME_MAX: Final = 64
"""Characters of a function's and of a role's name (Lambda API CreateFunction, IAM quotas)."""

OLDEST_MESSAGE_SECONDS: Final = 900
"""A backlog younger than this is no news: the reconcilers wait as long."""


def build_queues(config: StageConfig, foundation: Foundation) -> dict[str, QueuePair]:
    """Every queue of the registry with its dead-letter queue, by name."""
    return {
        spec.name: QueuePair(
            spec.name,
            QueuePairArgs(
                spec=spec,
                stage=config.stage,
                alarm_topic_arn=foundation.topic.arn,
                protect=config.protects(spec.name),
                oldest_message_seconds=max(OLDEST_MESSAGE_SECONDS, 2 * spec.visibility_timeout_seconds),
            ),
        )
        for spec in QUEUES
    }


def build_consumers(
    config: StageConfig, foundation: Foundation, pairs: Mapping[str, QueuePair], secrets: StageSecrets
) -> dict[str, QueueConsumer]:
    """The consumer of every queue, by the queue's name; all queues exist first, since consumers send to each other."""
    return {
        spec.name: QueueConsumer(
            f"{spec.name}-consumer",
            QueueConsumerArgs(
                pair=pairs[spec.name],
                function=LambdaFunctionArgs(
                    physical_name=physical_name(config.stage, spec.name, limit=FUNCTION_NAME_MAX),
                    handler=spec.handler,
                    package=package(spec.handler, config),
                    access=declared_access(
                        spec.name, config, pairs, secrets, reads=spec.secrets, settings=spec.settings
                    ),
                    architecture=config.architecture,
                    python_version=config.python_version,
                    timeout_seconds=spec.function_timeout_seconds,
                    memory_mb=spec.memory_mb,
                    log_retention_days=config.log_retention_days,
                    key_arn=foundation.key_arn,
                ),
            ),
        )
        for spec in QUEUES
    }
