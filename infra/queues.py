"""Every queue of the registry with its consumer."""

from collections.abc import Mapping

from api_services.queues import QUEUES, physical_name
from infra import functions
from infra.components.lambda_function import NAME_MAX, LambdaFunctionArgs
from infra.components.queue_consumer import QueueConsumer, QueueConsumerArgs
from infra.components.queue_pair import QueuePair, QueuePairArgs
from infra.config import StageConfig
from infra.foundation import Foundation
from infra.processes import declared_access


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
            ),
        )
        for spec in QUEUES
    }


def build_consumers(
    config: StageConfig, foundation: Foundation, pairs: Mapping[str, QueuePair]
) -> dict[str, QueueConsumer]:
    """The consumer of every queue, by the queue's name; all queues exist first, since consumers send to each other."""
    return {
        spec.name: QueueConsumer(
            f"{spec.name}-consumer",
            QueueConsumerArgs(
                pair=pairs[spec.name],
                function=LambdaFunctionArgs(
                    physical_name=physical_name(config.stage, spec.name, limit=NAME_MAX),
                    handler=spec.handler,
                    package=functions.package(spec.handler, config),
                    access=declared_access(spec.name, config, foundation, pairs, spec.secrets, spec.settings),
                    architecture=config.architecture,
                    python_version=config.python_version,
                    timeout_seconds=spec.function_timeout_seconds,
                    memory_mb=spec.memory_mb,
                    log_retention_days=config.log_retention_days,
                    key_arn=foundation.key_arn,
                    tracing=config.tracing,
                ),
            ),
        )
        for spec in QUEUES
    }
