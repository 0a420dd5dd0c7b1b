"""Sending to real queues."""

from collections.abc import Iterator

import pytest

from api_services.errors import DependencyError
from api_services.queues import REPORT_GENERATE
from api_services.reports.messages import GenerateReport
from api_services.request_context import request_context
from api_services.sqs import BATCH_MAX_BYTES, SqsQueueSender, message_bytes
from local.emulator import Emulator
from tests.support.queues import QueuePair, queue_pair
from tests.unit.api_services.test_sqs import NOTES, Note

pytestmark = pytest.mark.integration


@pytest.fixture
def queues(emulator: Emulator) -> Iterator[QueuePair]:
    with queue_pair(emulator) as pair:
        yield pair


def sender(queues: QueuePair, key: str) -> SqsQueueSender:
    return SqsQueueSender({key: queues.url}, lambda: queues.client)


def test_a_batch_arrives_whole_with_its_request_id(queues: QueuePair) -> None:
    sent = [GenerateReport(interview_id=f"iv-{number}") for number in range(23)]
    with request_context("req-9"):
        sender(queues, "REPORT_GENERATE_QUEUE_URL").send_batch(REPORT_GENERATE, sent)
    received: list[GenerateReport] = []
    while messages := queues.receive(queues.url, wait_seconds=1):
        for message in messages:
            assert message["MessageAttributes"]["requestId"]["StringValue"] == "req-9"
            received.append(REPORT_GENERATE.adapter.validate_json(message["Body"]))
    assert sorted(each.interview_id for each in received) == sorted(each.interview_id for each in sent)


def test_the_largest_message_is_taken(queues: QueuePair) -> None:
    empty = message_bytes(Note(text="").body(), {"requestId": {"DataType": "String", "StringValue": "r" * 32}})
    sender(queues, "NOTES_QUEUE_URL").send_batch(NOTES, [Note(text="x" * (BATCH_MAX_BYTES - empty))] * 2)
    queues.wait_for_depth(queues.url, (2, 0))


def test_every_character_arrives_as_it_was(queues: QueuePair) -> None:
    text = "".join(map(chr, range(0x20))) + "\x7f\ufffe\uffff\U0001f469\u200d\U0001f4bb"
    sender(queues, "NOTES_QUEUE_URL").send(NOTES, Note(text=text))
    (message,) = queues.receive(queues.url)
    assert Note.model_validate_json(message["Body"]).text == text


def test_a_queue_that_is_not_there_is_a_dependency_that_failed(queues: QueuePair) -> None:
    nowhere = SqsQueueSender({"NOTES_QUEUE_URL": queues.url + "-nowhere"}, lambda: queues.client)
    with pytest.raises(DependencyError):
        nowhere.send(NOTES, Note(text="x"))
