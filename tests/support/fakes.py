"""Fakes of the interfaces that services and consumers receive; each subclasses the real one."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from api_services.delivery.dead_letters import DeadLetterReason
from api_services.delivery.failures import Failure, FailureStore
from api_services.messages import Message
from api_services.queues import QueueSpec
from api_services.request_context import current_request_id
from api_services.sqs import QueueSender
from functions.platform.delivery import Delivery
from functions.platform.records import Record

M = TypeVar("M", bound=Message)


@dataclass(frozen=True)
class Sent:
    """One message that was sent."""

    queue: str
    message: Message
    delay_seconds: int
    request_id: str | None


class FakeQueueSender(QueueSender):
    """Keeps what is sent; `fail_with` is raised by the next sends until it is None again, and nothing is sent."""

    def __init__(self) -> None:
        self.sent: list[Sent] = []
        self.fail_with: Exception | None = None

    def send_batch(
        self,
        spec: QueueSpec[M],
        messages: Sequence[M],
        *,
        delay_seconds: int = 0,
        request_ids: Sequence[str | None] | None = None,
    ) -> None:
        """Keep all of them."""
        if self.fail_with is not None:
            raise self.fail_with
        ids = request_ids if request_ids is not None else [current_request_id()] * len(messages)
        self.sent.extend(
            Sent(spec.name, message, delay_seconds, request_id)
            for message, request_id in zip(messages, ids, strict=True)
        )

    def messages(self, queue: str) -> list[Message]:
        """What was sent to that queue, in order."""
        return [sent.message for sent in self.sent if sent.queue == queue]


class FakeDelivery(Delivery):
    """Keeps what the consumer did to its queues; `fail_with` makes every action raise."""

    def __init__(self) -> None:
        self.dead_letters: list[tuple[Record, DeadLetterReason]] = []
        self.visibilities: list[tuple[str, int]] = []
        self.fail_with: Exception | None = None

    def dead_letter(self, record: Record, reason: DeadLetterReason) -> None:
        """Keep the record with its reason."""
        if self.fail_with is not None:
            raise self.fail_with
        self.dead_letters.append((record, reason))

    def set_visibility(self, record: Record, seconds: int) -> None:
        """Keep the message id with the seconds."""
        if self.fail_with is not None:
            raise self.fail_with
        self.visibilities.append((record["messageId"], seconds))


class FakeFailureStore(FailureStore):
    """Keeps failures in memory; `fail_with` makes it raise."""

    def __init__(self) -> None:
        self.failures: list[Failure] = []
        self.fail_with: Exception | None = None

    def record(self, failures: Sequence[Failure]) -> None:
        """Keep them."""
        if self.fail_with is not None:
            raise self.fail_with
        self.failures.extend(failures)

    def by_id(self) -> dict[str, Failure]:
        """The last failure of each message."""
        return {failure.message_id: failure for failure in self.failures}


@dataclass
class FakeLambdaContext:
    """A context whose time only passes when a test says so."""

    remaining_ms: float = 60_000

    def get_remaining_time_in_millis(self) -> int:
        """What is left."""
        return int(self.remaining_ms)


def sqs_record(message_id: str, body: Any, **fields: Any) -> dict[str, Any]:
    """A record as Lambda delivers it; a `Message` becomes its body."""
    return {
        "messageId": message_id,
        "receiptHandle": f"receipt-{message_id}",
        "body": body.body() if isinstance(body, Message) else body,
        "attributes": {"ApproximateReceiveCount": "1"},
        "messageAttributes": {},
        "eventSource": "aws:sqs",
        "eventSourceARN": "arn:aws:sqs:eu-west-1:000000000000:jobs",
        "awsRegion": "eu-west-1",
    } | fields


def sqs_event(*records: dict[str, Any]) -> dict[str, Any]:
    """An event with these records."""
    return {"Records": list(records)}
