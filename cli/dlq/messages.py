"""Reading a dead-letter queue without losing anything: receive, look, give back."""

import hashlib
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from api_services.delivery.dead_letters import DeadLetterReason, reason_of
from api_services.request_context import REQUEST_ID_ATTRIBUTE

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient

REDRIVE_COUNT_ATTRIBUTE: Final = "redriveCount"
"""How often an operator moved the message back; travels with it."""

HOLD_SECONDS: Final = 120
"""How long a message that is being looked at stays hidden from others."""

BATCH: Final = 10
"""Entries of one receive, delete or visibility request (SQS guide, quotas-messages)."""

_LONG_POLL_SECONDS: Final = 1


@dataclass(frozen=True, slots=True)
class DeadMessage:
    """One message of a dead-letter queue, with all it needs to be sent again unchanged."""

    message_id: str
    receipt_handle: str
    body: str
    attributes: Mapping[str, Mapping[str, Any]]
    system_attributes: Mapping[str, str]

    def text(self, name: str) -> str | None:
        """The string value of a message attribute."""
        return self.attributes.get(name, {}).get("StringValue")

    @property
    def reason(self) -> DeadLetterReason | None:
        """Why the consumer sent it here; none where SQS moved it after its last receive."""
        return reason_of(self.attributes)

    @property
    def error_code(self) -> str | None:
        """Stable code of the error, where there is a reason."""
        return self.reason.code if self.reason else None

    @property
    def request_id(self) -> str | None:
        """Id of the request that caused the message."""
        return self.text(REQUEST_ID_ATTRIBUTE)

    @property
    def original_message_id(self) -> str:
        """Id under which the consumer saw the message."""
        return self.reason.message_id if self.reason else self.message_id

    @property
    def redrive_count(self) -> int:
        """How often it was moved back before."""
        value = self.text(REDRIVE_COUNT_ATTRIBUTE) or "0"
        return int(value) if value.isdigit() else 0

    @property
    def sent_at_seconds(self) -> float:
        """When the message was first sent, as Unix time."""
        return int(self.system_attributes.get("SentTimestamp", "0")) / 1000

    @property
    def body_digest(self) -> str:
        """Short name of the body, for listings that must not show it."""
        return hashlib.sha256(self.body.encode()).hexdigest()[:12]


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageFilter:
    """Which messages are meant; an empty filter means all."""

    error_code: str | None = None
    request_id: str | None = None
    message_id: str | None = None
    min_age_seconds: float | None = None

    def matches(self, message: DeadMessage, *, now_seconds: float) -> bool:
        """Whether every condition that is set holds for `message`."""
        return (
            self.error_code in (None, message.error_code)
            and self.request_id in (None, message.request_id)
            and self.message_id in (None, message.message_id, message.original_message_id)
            and (self.min_age_seconds is None or now_seconds - message.sent_at_seconds >= self.min_age_seconds)
        )


def depth(sqs: "SQSClient", queue_url: str) -> int:
    """Messages waiting in the queue; SQS calls the number approximate."""
    attributes = sqs.get_queue_attributes(QueueUrl=queue_url, AttributeNames=["ApproximateNumberOfMessages"])
    return int(attributes["Attributes"]["ApproximateNumberOfMessages"])


def receive(
    sqs: "SQSClient", queue_url: str, *, at_most: int, hold_seconds: int = HOLD_SECONDS
) -> Iterator[DeadMessage]:
    """Up to `at_most` distinct messages, each hidden from others for `hold_seconds`; ends when there are no more."""
    seen: set[str] = set()
    while len(seen) < at_most:
        answer = sqs.receive_message(
            QueueUrl=queue_url,
            MaxNumberOfMessages=min(BATCH, at_most - len(seen)),
            WaitTimeSeconds=_LONG_POLL_SECONDS,
            VisibilityTimeout=hold_seconds,
            MessageAttributeNames=["All"],
            MessageSystemAttributeNames=["All"],
        )
        fresh = [raw for raw in answer.get("Messages", []) if raw.get("MessageId") not in seen]
        if not fresh:
            return
        for raw in fresh:
            message = DeadMessage(
                message_id=raw.get("MessageId", ""),
                receipt_handle=raw.get("ReceiptHandle", ""),
                body=raw.get("Body", ""),
                attributes=raw.get("MessageAttributes", {}),
                system_attributes={str(name): value for name, value in raw.get("Attributes", {}).items()},
            )
            seen.add(message.message_id)
            yield message


def release(sqs: "SQSClient", queue_url: str, messages: Iterable[DeadMessage]) -> None:
    """Make messages that were only looked at visible to others at once."""
    for group in in_batches(list(messages)):
        sqs.change_message_visibility_batch(
            QueueUrl=queue_url,
            Entries=[
                {"Id": str(index), "ReceiptHandle": message.receipt_handle, "VisibilityTimeout": 0}
                for index, message in enumerate(group)
            ],
        )


def peek(sqs: "SQSClient", queue_url: str, *, at_most: int, wanted: MessageFilter) -> list[DeadMessage]:
    """The messages that match, looked at and given back."""
    messages = list(receive(sqs, queue_url, at_most=at_most))
    release(sqs, queue_url, messages)
    now = time.time()
    return [message for message in messages if wanted.matches(message, now_seconds=now)]


def in_batches(messages: Sequence[DeadMessage]) -> Iterator[Sequence[DeadMessage]]:
    """Groups of at most ten, as SQS takes them."""
    return (messages[start : start + BATCH] for start in range(0, len(messages), BATCH))
