from typing import Any, cast

import pytest

from api_services.delivery.dead_letters import DeadLetterReason
from api_services.errors import ConfigurationError
from functions.platform.delivery import SqsDelivery, api_attributes
from functions.platform.poller import record_of
from tests.support.fakes import sqs_record

REASON = DeadLetterReason(error_class="X", code="x", queue="notes", message_id="m-1", receive_count=1)


class FakeSqs:
    """Keeps the requests."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self.visibilities: list[dict[str, Any]] = []

    def send_message(self, **request: Any) -> None:
        self.sent.append(request)

    def change_message_visibility(self, **request: Any) -> None:
        self.visibilities.append(request)


def delivery(client: FakeSqs, queue_url: str | None = "queue", dlq_url: str | None = "dlq") -> SqsDelivery:
    return SqsDelivery(queue_url, dlq_url, lambda: cast(Any, client))


def test_a_dead_letter_takes_group_deduplication_id_and_trace_header_along() -> None:
    client = FakeSqs()
    attributes = {"MessageGroupId": "org-1", "MessageDeduplicationId": "d-1", "AWSTraceHeader": "Root=1-2-3"}
    delivery(client).dead_letter(sqs_record("m-1", "body", attributes=attributes), REASON)
    (request,) = client.sent
    assert (request["QueueUrl"], request["MessageBody"]) == ("dlq", "body")
    assert (request["MessageGroupId"], request["MessageDeduplicationId"]) == ("org-1", "d-1")
    assert request["MessageSystemAttributes"]["AWSTraceHeader"]["StringValue"] == "Root=1-2-3"


@pytest.mark.parametrize("attributes", [None, {}, {"MessageGroupId": None}])
def test_a_dead_letter_of_a_standard_queue_has_no_group(attributes: Any) -> None:
    client = FakeSqs()
    delivery(client).dead_letter(sqs_record("m-1", "body", attributes=attributes), REASON)
    assert set(client.sent[0]) == {"QueueUrl", "MessageBody", "MessageAttributes"}


def test_visibility_is_set_by_the_receipt() -> None:
    client = FakeSqs()
    delivery(client).set_visibility(sqs_record("m-1", "body"), 30)
    assert client.visibilities == [{"QueueUrl": "queue", "ReceiptHandle": "receipt-m-1", "VisibilityTimeout": 30}]


def test_without_its_urls_nothing_is_pretended() -> None:
    client = FakeSqs()
    with pytest.raises(ConfigurationError):
        delivery(client, dlq_url=None).dead_letter(sqs_record("m-1", "body"), REASON)
    with pytest.raises(ConfigurationError):
        delivery(client, queue_url=None).set_visibility(sqs_record("m-1", "body"), 1)


@pytest.mark.parametrize("attributes", [None, [], "x", {"a": None}, {"a": {}}, {"a": {"dataType": "String"}}])
def test_attributes_that_sqs_cannot_have_sent_are_left_out(attributes: Any) -> None:
    assert api_attributes(sqs_record("m-1", "body", messageAttributes=attributes)) == {}


def test_attributes_survive_the_way_through_an_event() -> None:
    attributes = {
        "text": {"DataType": "String", "StringValue": "x"},
        "number": {"DataType": "Number.int", "StringValue": "7"},
        "bytes": {"DataType": "Binary.png", "BinaryValue": b"\x00\xff"},
    }
    message: Any = {"MessageId": "m-1", "ReceiptHandle": "r", "Body": "b", "MessageAttributes": attributes}
    assert api_attributes(record_of(message)) == attributes
