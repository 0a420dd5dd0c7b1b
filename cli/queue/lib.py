"""What waits in the stage's queues, and sending a message that the consumer would take."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError
from pydantic.alias_generators import to_camel

from api_services.errors import InvalidInputError, NotFoundError
from api_services.queues import QUEUES, QueueSpec, queue_named

if TYPE_CHECKING:
    from types_boto3_cloudwatch import CloudWatchClient
    from types_boto3_sqs import SQSClient

_AGE_WINDOW: Final = timedelta(minutes=10)
"""SQS reports the age of the oldest message to CloudWatch every minute or two."""


@dataclass(frozen=True, slots=True)
class QueueState:
    """One queue and its dead-letter queue as they stand; SQS calls its counts approximate."""

    name: str
    waiting: int
    in_flight: int
    delayed: int
    oldest_age_seconds: int | None
    dead_letters: int

    def as_json(self) -> dict[str, Any]:
        """Field names in camelCase."""
        return {to_camel(name): value for name, value in asdict(self).items()}


def spec_named(name: str) -> QueueSpec[Any]:
    """The deployed queue of that name; `InvalidInputError` with the known names otherwise."""
    try:
        return queue_named(name)
    except KeyError as exc:
        raise InvalidInputError(str(exc.args[0]), code="unknown_queue") from None


def url_of(outputs: Mapping[str, Any], output: str, stage: str) -> str:
    """The queue URL in a stack output; `NotFoundError` where the stage does not have it yet."""
    url = outputs.get(output)
    if not isinstance(url, str):
        raise NotFoundError(f"stage {stage} has no output {output}; deploy it first", code="not_deployed")
    return url


def states(
    sqs: "SQSClient", outputs: Mapping[str, Any], stage: str, *, cloudwatch: "CloudWatchClient | None" = None
) -> list[QueueState]:
    """Every queue of the registry; ages only where `cloudwatch` can be asked."""
    return [_state(sqs, outputs, stage, spec, cloudwatch) for spec in QUEUES]


def _state(
    sqs: "SQSClient",
    outputs: Mapping[str, Any],
    stage: str,
    spec: QueueSpec[Any],
    cloudwatch: "CloudWatchClient | None",
) -> QueueState:
    counts = _counts(sqs, url_of(outputs, spec.output, stage))
    dead = _counts(sqs, url_of(outputs, spec.dlq_output, stage))
    return QueueState(
        name=spec.name,
        waiting=counts["ApproximateNumberOfMessages"],
        in_flight=counts["ApproximateNumberOfMessagesNotVisible"],
        delayed=counts["ApproximateNumberOfMessagesDelayed"],
        oldest_age_seconds=_oldest_age(cloudwatch, spec.physical_name(stage)) if cloudwatch is not None else None,
        dead_letters=dead["ApproximateNumberOfMessages"] + dead["ApproximateNumberOfMessagesNotVisible"],
    )


def _counts(sqs: "SQSClient", queue_url: str) -> dict[str, int]:
    answer = sqs.get_queue_attributes(
        QueueUrl=queue_url,
        AttributeNames=[
            "ApproximateNumberOfMessages",
            "ApproximateNumberOfMessagesNotVisible",
            "ApproximateNumberOfMessagesDelayed",
        ],
    )
    return {str(name): int(value) for name, value in answer["Attributes"].items()}


def _oldest_age(
    cloudwatch: "CloudWatchClient", queue_name: str, now: Callable[[], datetime] = lambda: datetime.now(UTC)
) -> int | None:
    end = now()
    points = cloudwatch.get_metric_statistics(
        Namespace="AWS/SQS",
        MetricName="ApproximateAgeOfOldestMessage",
        Dimensions=[{"Name": "QueueName", "Value": queue_name}],
        StartTime=end - _AGE_WINDOW,
        EndTime=end,
        Period=60,
        Statistics=["Maximum"],
    )["Datapoints"]
    latest = max(points, key=lambda point: point.get("Timestamp", end), default=None)
    return int(latest.get("Maximum", 0)) if latest is not None else None


def checked_message(spec: QueueSpec[Any], body: str) -> Any:
    """The message in `body`, as the consumer would read it; `InvalidInputError` names each fault and no value."""
    try:
        return spec.adapter.validate_json(body)
    except ValidationError as exc:
        faults = "; ".join(
            f"{'.'.join(str(part) for part in fault['loc']) or 'body'}: {fault['msg']}"
            for fault in exc.errors(include_input=False, include_url=False)
        )
        raise InvalidInputError(f"{spec.name} would drop this message: {faults}", code="invalid_message") from None
