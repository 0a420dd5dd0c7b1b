"""Runs a consumer as a process: the Lambda runner, fed by polling the queue."""

import base64
import logging
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from api_services.errors import ConfigurationError
from api_services.queues import QueueSpec
from functions.platform.sqs_consumer import SqsConsumer
from functions.platform.visibility import Heartbeat, ReleasingDelivery

if TYPE_CHECKING:
    from types_boto3_sqs.client import SQSClient
    from types_boto3_sqs.type_defs import MessageTypeDef

RECEIVE_MAX: Final = 10
"""Messages of one ReceiveMessage (API reference, ReceiveMessage)."""

PAUSE_FIRST_SECONDS: Final = 1.0
PAUSE_MAX_SECONDS: Final = 60.0

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class PollOptions:
    """`wait_seconds` bounds a stop while idle; `lease_seconds` is how long a killed process hides its messages."""

    wait_seconds: int = 5
    lease_seconds: int = 60
    once: bool = False
    until_empty: bool = False


class _Deadline:
    """A context as Lambda gives it: the function's timeout, counted from the receive."""

    def __init__(self, timeout_seconds: float) -> None:
        self._end = monotonic() + timeout_seconds

    def get_remaining_time_in_millis(self) -> int:
        """Never below zero."""
        return max(0, int((self._end - monotonic()) * 1000))


class Poller:
    """One consumer on one queue. `stop` may be set at any time: the record under way is finished, no other is begun."""

    def __init__(
        self,
        consumer: SqsConsumer[Any, Any],
        client: "SQSClient",
        queue_url: str,
        options: PollOptions,
        stop: threading.Event,
    ) -> None:
        self._consumer = consumer
        self._spec: QueueSpec[Any] = consumer.spec
        self._client = client
        self._queue_url = queue_url
        self._options = options
        self._stop = stop

    def run(self) -> None:
        """Poll until stopped, or as the options say. Raises `ConfigurationError` after returning the messages."""
        from botocore.exceptions import BotoCoreError, ClientError

        failures_in_a_row = 0
        while not self._stop.is_set():
            try:
                worked = self.poll_once()
                if self._options.once or (self._options.until_empty and not worked and self._is_empty()):
                    return
                failures_in_a_row = 0
            except ConfigurationError:
                raise
            except (BotoCoreError, ClientError) as exc:
                if self._options.once:
                    raise
                # error-ends-here: nothing was received or deleted; polling goes on after a pause.
                logger.warning(
                    "poll.queue_unavailable",
                    extra={"queue": self._spec.name, "errorClass": type(exc).__name__},
                )
                failures_in_a_row += 1
            except Exception:
                if self._options.once:
                    raise
                # error-ends-here: as a failed invocation, the batch becomes visible again and is delivered again.
                logger.exception("poll.batch_failed", extra={"queue": self._spec.name})
                failures_in_a_row += 1
            if failures_in_a_row:
                self._stop.wait(min(PAUSE_FIRST_SECONDS * 2 ** (failures_in_a_row - 1), PAUSE_MAX_SECONDS))

    def poll_once(self) -> int:
        """Receive one batch and work on it; how many messages there were."""
        messages = self._receive()
        if not messages:
            return 0
        receipts = {message["MessageId"]: message["ReceiptHandle"] for message in messages}  # pyright: ignore[reportTypedDictNotRequiredAccess]
        if self._stop.is_set():
            self._make_visible(receipts.values())
            return len(messages)
        deadline = _Deadline(self._spec.function_timeout_seconds)
        with Heartbeat(
            self._client,
            self._queue_url,
            receipts,
            lease_seconds=self._options.lease_seconds,
            limit_seconds=self._spec.function_timeout_seconds,
        ) as heartbeat:
            answer, untouched = self._handle(messages, deadline, heartbeat)
        failed = {item["itemIdentifier"] for item in answer["batchItemFailures"]}
        self._delete([receipt for message_id, receipt in receipts.items() if message_id not in failed])
        self._make_visible([receipts[message_id] for message_id in untouched])
        return len(messages)

    def _handle(self, messages: Sequence["MessageTypeDef"], deadline: _Deadline, heartbeat: Heartbeat) -> Any:
        try:
            return self._consumer.handle(
                {"Records": [record_of(message) for message in messages]},
                deadline,
                may_start_ms=lambda: 0 if self._stop.is_set() else deadline.get_remaining_time_in_millis(),
                delivery=lambda: ReleasingDelivery(self._consumer.delivery(), heartbeat.release),
            )
        except ConfigurationError:
            self._make_visible([message["ReceiptHandle"] for message in messages])  # pyright: ignore[reportTypedDictNotRequiredAccess]
            raise

    def _receive(self) -> list["MessageTypeDef"]:
        answer = self._client.receive_message(
            QueueUrl=self._queue_url,
            MaxNumberOfMessages=min(self._spec.batch_size, RECEIVE_MAX),
            WaitTimeSeconds=self._options.wait_seconds,
            VisibilityTimeout=self._options.lease_seconds,
            MessageSystemAttributeNames=["All"],
            MessageAttributeNames=["All"],
        )
        return answer.get("Messages", [])

    def _delete(self, receipts: Sequence[str]) -> None:
        if not receipts:
            return
        answer = self._client.delete_message_batch(
            QueueUrl=self._queue_url,
            Entries=[{"Id": str(number), "ReceiptHandle": receipt} for number, receipt in enumerate(receipts)],
        )
        if answer.get("Failed"):
            logger.warning("poll.not_deleted", extra={"queue": self._spec.name, "count": len(answer["Failed"])})

    def _make_visible(self, receipts: "Sequence[str] | Any") -> None:
        entries: list[Any] = [
            {"Id": str(number), "ReceiptHandle": receipt, "VisibilityTimeout": 0}
            for number, receipt in enumerate(receipts)
        ]
        if entries:
            self._client.change_message_visibility_batch(QueueUrl=self._queue_url, Entries=entries)

    def _is_empty(self) -> bool:
        names: list[Any] = [
            "ApproximateNumberOfMessages",
            "ApproximateNumberOfMessagesNotVisible",
            "ApproximateNumberOfMessagesDelayed",
        ]
        attributes = self._client.get_queue_attributes(QueueUrl=self._queue_url, AttributeNames=names)["Attributes"]
        return all(int(value) == 0 for value in attributes.values())


def record_of(message: "MessageTypeDef") -> dict[str, Any]:
    """A received message as Lambda's event has it."""
    return {
        "messageId": message.get("MessageId"),
        "receiptHandle": message.get("ReceiptHandle"),
        "body": message.get("Body"),
        "attributes": dict(message.get("Attributes", {})),
        "messageAttributes": {
            name: _event_attribute(value) for name, value in message.get("MessageAttributes", {}).items()
        },
        "eventSource": "aws:sqs",
    }


def _event_attribute(value: Any) -> dict[str, Any]:
    result: dict[str, Any] = {"dataType": value["DataType"], "stringListValues": [], "binaryListValues": []}
    if "StringValue" in value:
        result["stringValue"] = value["StringValue"]
    if "BinaryValue" in value:
        result["binaryValue"] = base64.b64encode(value["BinaryValue"]).decode()
    return result
