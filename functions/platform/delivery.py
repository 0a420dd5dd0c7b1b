"""What the consumer does to a failed message on its queue: hide it for a while, or send it to the dead-letter queue."""

import base64
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from api_services.delivery.dead_letters import DeadLetterReason, with_reason
from api_services.errors import ConfigurationError
from functions.platform.records import Record, is_object, system_attribute

if TYPE_CHECKING:
    from types_boto3_sqs.client import SQSClient


class Delivery(ABC):
    """May raise anything: the consumer then leaves the message to its normal redelivery."""

    @abstractmethod
    def dead_letter(self, record: Record, reason: DeadLetterReason) -> None:
        """Send body and attributes of `record` to the dead-letter queue."""

    @abstractmethod
    def set_visibility(self, record: Record, seconds: int) -> None:
        """Let the message become visible `seconds` from now."""


class SqsDelivery(Delivery):
    """`queue_url` and `dlq_url` are the consumer's own."""

    def __init__(self, queue_url: str | None, dlq_url: str | None, client: "Callable[[], SQSClient]") -> None:
        self._queue_url = queue_url
        self._dlq_url = dlq_url
        self._client = client

    def dead_letter(self, record: Record, reason: DeadLetterReason) -> None:
        """One SendMessage; group, deduplication id and trace header go along."""
        if self._dlq_url is None:
            raise ConfigurationError(f"The URL of {reason.queue}'s dead-letter queue is not in the environment.")
        request: dict[str, Any] = {
            "QueueUrl": self._dlq_url,
            "MessageBody": record["body"],
            "MessageAttributes": with_reason(api_attributes(record), reason),
        }
        for name in ("MessageGroupId", "MessageDeduplicationId"):
            value = system_attribute(record, name)
            if value is not None:
                request[name] = value
        trace_header = system_attribute(record, "AWSTraceHeader")
        if trace_header is not None:
            request["MessageSystemAttributes"] = {"AWSTraceHeader": {"DataType": "String", "StringValue": trace_header}}
        self._client().send_message(**request)

    def set_visibility(self, record: Record, seconds: int) -> None:
        """One ChangeMessageVisibility."""
        if self._queue_url is None:
            raise ConfigurationError("The URL of the consumer's own queue is not in the environment.")
        self._client().change_message_visibility(
            QueueUrl=self._queue_url, ReceiptHandle=record["receiptHandle"], VisibilityTimeout=seconds
        )


def api_attributes(record: Record) -> dict[str, Any]:
    """Message attributes of an event's record in the shape of the SQS API; what SQS cannot have sent is left out."""
    attributes = record.get("messageAttributes")
    if not is_object(attributes):
        return {}
    result: dict[str, Any] = {}
    for name, value in attributes.items():
        data_type = value.get("dataType") if is_object(value) else None
        if not isinstance(data_type, str):
            continue
        if data_type.split(".", 1)[0] == "Binary":
            if isinstance(value.get("binaryValue"), str):
                result[name] = {"DataType": data_type, "BinaryValue": base64.b64decode(value["binaryValue"])}
        elif isinstance(value.get("stringValue"), str):
            result[name] = {"DataType": data_type, "StringValue": value["stringValue"]}
    return result
