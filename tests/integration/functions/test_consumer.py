"""The consumer's actions on real queues."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from api_services.delivery.dead_letters import ATTRIBUTES_MAX, reason_of
from api_services.errors import NotFoundError, RateLimitedError
from api_services.interviews.messages import InterviewCompleted, InterviewFailed
from api_services.queues import INTERVIEW_COMPLETED
from functions.platform.delivery import SqsDelivery
from functions.platform.poller import record_of
from functions.platform.records import RecordContext
from functions.platform.sqs_consumer import SqsConsumer, sqs_consumer
from local.emulator import Emulator
from tests.support.fakes import FakeFailureStore
from tests.support.queues import QueuePair, queue_pair
from tests.unit.functions.platform.consumers import completed

pytestmark = pytest.mark.integration

Ended = InterviewCompleted | InterviewFailed


@pytest.fixture
def queues(emulator: Emulator) -> Iterator[QueuePair]:
    with queue_pair(emulator) as pair:
        yield pair


def consumer(queues: QueuePair, error: Exception, *, fifo: bool = False) -> SqsConsumer[None, Ended]:
    def fail(collaborators: None, message: Ended, context: RecordContext) -> None:
        raise error

    return sqs_consumer(
        replace(INTERVIEW_COMPLETED, fifo=fifo),
        fail,
        connect=lambda: None,
        delivery=lambda: SqsDelivery(queues.url, queues.dlq_url, lambda: queues.client),
        failures=FakeFailureStore,
    )


def failed_ids(handler: SqsConsumer[None, Ended], messages: list[Any]) -> list[str]:
    answer = handler({"Records": [record_of(message) for message in messages]})
    return [item["itemIdentifier"] for item in answer["batchItemFailures"]]


def text(value: str) -> dict[str, Any]:
    return {"DataType": "String", "StringValue": value}


@pytest.mark.parametrize("extra", [0, 4, 6, 9])
def test_a_permanent_failure_is_in_the_dead_letter_queue_with_its_attributes_and_its_reason(
    queues: QueuePair, extra: int
) -> None:
    attributes: dict[str, Any] = {f"own{number}": text(str(number)) for number in range(extra)}
    if extra:
        attributes["own0"] = {"DataType": "Binary", "BinaryValue": b"\x00\xff"}
    attributes["requestId"] = text("req-1")
    body = completed("gone").body()
    message_id = queues.send(body, MessageAttributes=attributes)
    messages = queues.receive(queues.url)
    assert failed_ids(consumer(queues, NotFoundError("No such interview.")), messages) == []
    (letter,) = queues.receive(queues.dlq_url)
    assert letter["Body"] == body
    assert len(letter["MessageAttributes"]) <= ATTRIBUTES_MAX
    for name, value in attributes.items():
        assert {key: letter["MessageAttributes"][name][key] for key in value} == value
    reason = reason_of(letter["MessageAttributes"])
    if extra == 9:
        assert reason is None
        return
    assert reason is not None
    assert (reason.error_class, reason.code, reason.queue) == ("NotFoundError", "not_found", "interview-completed")
    assert (reason.message_id, reason.receive_count) == (message_id, 1)


def test_a_permanent_failure_of_a_fifo_queue_keeps_its_group_and_its_deduplication_id(emulator: Emulator) -> None:
    with queue_pair(emulator, fifo=True) as queues:
        queues.send(completed("gone").body(), MessageGroupId="org-1", MessageDeduplicationId="d-1")
        handler = consumer(queues, NotFoundError("No such interview."), fifo=True)
        assert failed_ids(handler, queues.receive(queues.url)) == []
        (letter,) = queues.receive(queues.dlq_url)
        assert letter["Attributes"]["MessageGroupId"] == "org-1"
        assert letter["Attributes"]["MessageDeduplicationId"] == "d-1"


def test_a_transient_failure_comes_back_when_it_said_and_not_at_the_queues_own_time(queues: QueuePair) -> None:
    message_id = queues.send(completed("slow").body())
    messages = queues.receive(queues.url, VisibilityTimeout=600)
    handler = consumer(queues, RateLimitedError("Too many.", retry_after_seconds=1))
    assert failed_ids(handler, messages) == [message_id]
    assert queues.depth(queues.url) == (0, 1)
    (again,) = queues.receive(queues.url, wait_seconds=10)
    assert again["MessageId"] == message_id
    assert again["Attributes"]["ApproximateReceiveCount"] == "2"


def test_a_permanent_failure_is_reported_as_failed_where_its_dead_letter_queue_is_gone(queues: QueuePair) -> None:
    message_id = queues.send(completed("gone").body())
    messages = queues.receive(queues.url)
    broken = replace(queues, dlq_url=queues.dlq_url + "-elsewhere")
    assert failed_ids(consumer(broken, NotFoundError("No such interview.")), messages) == [message_id]
    assert queues.depth(queues.dlq_url) == (0, 0)
