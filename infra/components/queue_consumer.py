"""The consumer of a queue: its function and the event source mapping that feeds it."""

from dataclasses import dataclass
from typing import Final

import pulumi
import pulumi_aws as aws

from infra.components.lambda_function import LambdaFunction, LambdaFunctionArgs
from infra.components.queue_pair import QueuePair

PARTIAL_RESPONSES: Final = "ReportBatchItemFailures"


@dataclass(frozen=True, kw_only=True)
class QueueConsumerArgs:
    pair: QueuePair
    function: LambdaFunctionArgs
    max_concurrency: int
    """Batches at a time, 2 to 1000."""


class QueueConsumer(pulumi.ComponentResource):
    """A function fed by a queue, with partial responses and a bound on its concurrency, always."""

    def __init__(self, name: str, args: QueueConsumerArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("sophia:sqs:QueueConsumer", name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        spec = args.pair.spec
        args.pair.grant_consume(args.function.access)
        self.consumer = LambdaFunction(name, args.function, child)
        self.mapping = aws.lambda_.EventSourceMapping(
            f"{name}-mapping",
            event_source_arn=args.pair.queue.arn,
            function_name=self.consumer.function.name,
            batch_size=spec.batch_size,
            maximum_batching_window_in_seconds=spec.batching_window_seconds,
            function_response_types=[PARTIAL_RESPONSES],
            scaling_config=aws.lambda_.EventSourceMappingScalingConfigArgs(maximum_concurrency=args.max_concurrency),
            opts=child,
        )
        if spec.name in spec.producers:
            # Lambda stops a function that feeds itself after 16 hops unless told that the loop is meant.
            aws.lambda_.FunctionRecursionConfig(
                f"{name}-recursion",
                function_name=self.consumer.function.name,
                recursive_loop="Allow",
                opts=child,
            )
        self.register_outputs({"mappingUuid": self.mapping.uuid})
