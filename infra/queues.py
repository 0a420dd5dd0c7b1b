"""Every queue of the registry with its consumer."""

from collections.abc import Mapping

from api_services.queues import QUEUES
from infra.components.queue_consumer import QueueConsumer, QueueConsumerArgs
from infra.components.queue_pair import QueuePair, QueuePairArgs
from infra.config import StageConfig
from infra.foundation import Foundation
from infra.functions import function_args


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
                max_concurrency=min(spec.max_concurrency, config.max_concurrency),
                function=function_args(spec, config, foundation, pairs),
            ),
        )
        for spec in QUEUES
    }
