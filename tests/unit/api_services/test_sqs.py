import json
import logging
import re
from typing import Any, cast

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from api_services.errors import ConfigurationError, DependencyError, InvalidInputError, PermanentError
from api_services.interviews.messages import InterviewFailed
from api_services.interviews.producer import send_interview_completed, send_interview_failed
from api_services.messages import Message
from api_services.queues import INTERVIEW_COMPLETED, REPORT_GENERATE, QueueSpec
from api_services.reports.messages import GenerateReport
from api_services.reports.producer import send_generate_report
from api_services.request_context import request_context
from api_services.sqs import (
    BATCH_MAX_BYTES,
    SEND_ATTEMPTS,
    SendError,
    SqsQueueSender,
    message_bytes,
    queue_sender,
    resolve_queue_url,
)
from tests.support.fakes import FakeQueueSender
from tests.unit.functions.platform.consumers import completed

URL = "https://sqs.eu-west-1.amazonaws.com/123456789012/reports"


class Note(Message):
    """A message of any text."""

    text: str
    topic: str = "t"


NOTES = QueueSpec(
    name="notes",
    purpose="for tests",
    messages=(Note,),
    producers=("api",),
    function_timeout_seconds=30,
    memory_mb=128,
    batch_size=10,
    max_concurrency=2,
    secrets=(),
)
FIFO_NOTES = QueueSpec(
    name="notes",
    purpose="for tests",
    messages=(Note,),
    producers=("api",),
    function_timeout_seconds=30,
    memory_mb=128,
    batch_size=10,
    max_concurrency=2,
    secrets=(),
    fifo=True,
    group_by="topic",
)


class FakeSqs:
    """Answers SendMessageBatch: `answers` maps an entry's id to how often it still fails; -1 is the sender's fault."""

    def __init__(self, faults: dict[str, int] | None = None, errors: list[Exception] | None = None) -> None:
        self.faults = faults or {}
        self.errors = errors or []
        self.calls: list[list[dict[str, Any]]] = []

    def send_message_batch(self, *, QueueUrl: str, Entries: list[dict[str, Any]]) -> dict[str, Any]:  # noqa: N803
        assert QueueUrl == URL
        self.calls.append(Entries)
        if self.errors:
            raise self.errors.pop(0)
        failed: list[dict[str, Any]] = []
        for entry in Entries:
            left = self.faults.get(entry["Id"], 0)
            if left:
                self.faults[entry["Id"]] = left - 1 if left > 0 else left
                failed.append({"Id": entry["Id"], "SenderFault": left < 0, "Code": "x"})
        ids = {fault["Id"] for fault in failed}
        return {"Successful": [{"Id": entry["Id"]} for entry in Entries if entry["Id"] not in ids], "Failed": failed}

    @property
    def sent(self) -> list[dict[str, Any]]:
        return [entry for call in self.calls for entry in call]


def sender(client: FakeSqs, key: str = "NOTES_QUEUE_URL") -> SqsQueueSender:
    return SqsQueueSender({key: URL}, lambda: cast(Any, client), sleep=lambda seconds: None, jitter=lambda: 0.5)


def notes(count: int, size: int = 1) -> list[Note]:
    return [Note(text="x" * size) for _ in range(count)]


def test_a_message_travels_as_its_body_with_the_request_id_in_force() -> None:
    client = FakeSqs()
    with request_context("req-7"):
        send_generate_report(sender(client, "REPORT_GENERATE_QUEUE_URL"), interview_id="iv-1")
    ((entry,),) = client.calls
    assert REPORT_GENERATE.adapter.validate_json(entry["MessageBody"]) == GenerateReport(interview_id="iv-1")
    assert entry["MessageAttributes"] == {"requestId": {"DataType": "String", "StringValue": "req-7"}}
    assert "DelaySeconds" not in entry


@pytest.mark.parametrize("request_id", [None, "", "two words", "x" * 129, "\ufffe", "línea", "req-7\n"])
def test_a_request_id_that_sqs_might_refuse_is_replaced(request_id: str | None) -> None:
    client = FakeSqs()
    with request_context(request_id):
        sender(client).send(NOTES, Note(text="x"))
    value = client.sent[0]["MessageAttributes"]["requestId"]["StringValue"]
    assert re.fullmatch(r"[0-9a-f]{32}", value)


def test_producers_send_what_the_consumer_reads() -> None:
    fake = FakeQueueSender()
    done = completed("iv-1")
    send_interview_completed(fake, interview_id="iv-1", organization_id="org-1", ended_at=done.ended_at)
    send_interview_failed(
        fake, interview_id="iv-2", organization_id="org-1", ended_at=done.ended_at, failure_code="bot_crashed"
    )
    send_generate_report(fake, interview_id="iv-1", delay_seconds=30)
    assert fake.messages(INTERVIEW_COMPLETED.name) == [
        done,
        InterviewFailed(
            interview_id="iv-2", organization_id="org-1", ended_at=done.ended_at, failure_code="bot_crashed"
        ),
    ]
    assert fake.sent[-1].delay_seconds == 30
    for message in fake.messages(INTERVIEW_COMPLETED.name):
        assert INTERVIEW_COMPLETED.adapter.validate_json(message.body()) == message


def test_an_unset_url_warns_and_skips(caplog: pytest.LogCaptureFixture) -> None:
    client = FakeSqs()
    SqsQueueSender({}, lambda: cast(Any, client)).send(NOTES, Note(text="x"))
    assert client.calls == []
    assert [(line.levelno, line.message) for line in caplog.records] == [(logging.WARNING, "producer.skipped")]


@pytest.mark.parametrize(("count", "calls"), [(0, []), (1, [1]), (10, [10]), (11, [10, 1]), (25, [10, 10, 5])])
def test_a_batch_is_split_by_ten_entries(count: int, calls: list[int]) -> None:
    client = FakeSqs()
    sender(client).send_batch(NOTES, notes(count))
    assert [len(call) for call in client.calls] == calls
    assert [entry["Id"] for entry in client.sent] == [str(number) for number in range(count)]


def test_a_batch_is_split_by_bytes_with_attributes_counted() -> None:
    client = FakeSqs()
    whole = message_bytes(Note(text="").body(), {"requestId": {"DataType": "String", "StringValue": "r" * 32}})
    sender(client).send_batch(NOTES, notes(4, BATCH_MAX_BYTES // 2 - whole))
    assert [len(call) for call in client.calls] == [2, 2]
    client = FakeSqs()
    sender(client).send_batch(NOTES, notes(4, BATCH_MAX_BYTES // 2 - whole + 1))
    assert [len(call) for call in client.calls] == [1, 1, 1, 1]


def test_bytes_are_counted_not_characters() -> None:
    assert message_bytes("é", {"ä": {"DataType": "String", "StringValue": "ü"}}) == 2 + 2 + 6 + 2


def test_one_message_that_is_too_large_is_refused_before_anything_is_sent() -> None:
    client = FakeSqs()
    with pytest.raises(PermanentError) as caught:
        sender(client).send_batch(NOTES, [*notes(3), *notes(1, BATCH_MAX_BYTES)])
    assert caught.value.code == "message_too_large"
    assert client.calls == []


def test_entries_that_failed_are_sent_again_alone() -> None:
    client = FakeSqs({"1": 1, "3": 2})
    sender(client).send_batch(NOTES, notes(5))
    assert [[entry["Id"] for entry in call] for call in client.calls] == [["0", "1", "2", "3", "4"], ["1", "3"], ["3"]]


def test_entries_that_keep_failing_are_raised_with_their_positions_after_the_others_were_sent() -> None:
    client = FakeSqs({"2": 99, "11": 99})
    with pytest.raises(SendError) as caught:
        sender(client).send_batch(NOTES, notes(13))
    assert caught.value.failed == (2, 11)
    assert caught.value.ids["positions"] == "2,11"
    assert len(client.calls) == 2 * SEND_ATTEMPTS
    assert isinstance(caught.value, DependencyError)


def test_entries_that_sqs_refuses_are_not_sent_again_and_raised_as_permanent() -> None:
    client = FakeSqs({"1": -1})
    with pytest.raises(PermanentError) as caught:
        sender(client).send_batch(NOTES, notes(3))
    assert caught.value.code == "message_refused"
    assert caught.value.ids["positions"] == "1"
    assert len(client.calls) == 1


@pytest.mark.parametrize(
    "error",
    [
        EndpointConnectionError(endpoint_url="http://127.0.0.1:1"),
        ClientError({"Error": {"Code": "AccessDenied"}}, "SendMessageBatch"),
    ],
)
def test_a_queue_that_does_not_answer_is_asked_once_and_all_that_is_unsent_is_named(error: Exception) -> None:
    client = FakeSqs(errors=[error])
    with pytest.raises(SendError) as caught:
        sender(client).send_batch(NOTES, notes(12))
    assert caught.value.failed == tuple(range(12))
    assert caught.value.__cause__ is error
    assert len(client.calls) == 1


def test_retries_wait_longer_each_time_with_jitter() -> None:
    waits: list[float] = []
    client = FakeSqs({"0": 99})
    patient = SqsQueueSender(
        {"NOTES_QUEUE_URL": URL}, lambda: cast(Any, client), sleep=waits.append, jitter=lambda: 0.5
    )
    with pytest.raises(SendError):
        patient.send(NOTES, Note(text="x"))
    assert waits == [0.1, 0.2, 0.4]


@pytest.mark.parametrize("delay", [-1, 901, 3600])
def test_a_delay_beyond_what_sqs_takes_is_refused(delay: int) -> None:
    client = FakeSqs()
    with pytest.raises(InvalidInputError, match=r"0\.\.900"):
        sender(client).send(NOTES, Note(text="x"), delay_seconds=delay)
    assert client.calls == []


def test_a_delay_is_passed_on() -> None:
    client = FakeSqs()
    sender(client).send(NOTES, Note(text="x"), delay_seconds=900)
    assert client.sent[0]["DelaySeconds"] == 900


def test_a_fifo_message_has_its_group_and_equal_bodies_equal_deduplication_ids() -> None:
    client = FakeSqs()
    sender(client).send_batch(FIFO_NOTES, [Note(text="x", topic="a"), Note(text="x", topic="a"), Note(text="y")])
    groups = [entry["MessageGroupId"] for entry in client.sent]
    first, second, third = [entry["MessageDeduplicationId"] for entry in client.sent]
    assert groups == ["a", "a", "t"]
    assert first == second != third


FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")


def test_no_body_holds_a_character_that_sqs_refuses() -> None:
    every = "".join(map(chr, range(0x20))) + "\x7f\x85\u2028\ufffd\ufffe\uffff\U0001f469\u200d\U0001f4bb\\\\ufffe"
    body = Note(text=every).body()
    assert not FORBIDDEN.search(body)
    assert Note.model_validate_json(body).text == every
    assert json.loads(body)["text"] == every


@pytest.mark.parametrize(
    ("url", "environ", "resolved"),
    [
        (URL, {}, URL),
        (URL, {"STAGE": "dev", "AWS_ENDPOINT_URL": ""}, URL),
        (
            "http://localhost:4566/000000000000/jobs",
            {"AWS_ENDPOINT_URL": "http://emulator:4566"},
            "http://emulator:4566/000000000000/jobs",
        ),
        (
            "http://localhost:4566/000000000000/jobs",
            {"AWS_ENDPOINT_URL": "http://other:1", "AWS_ENDPOINT_URL_SQS": "https://emulator:4567/"},
            "https://emulator:4567/000000000000/jobs",
        ),
        (URL, {"AWS_ACCOUNT_ID": "123456789012"}, URL),
    ],
)
def test_a_queue_url_is_rewritten_only_to_a_configured_endpoint(
    url: str, environ: dict[str, str], resolved: str
) -> None:
    assert resolve_queue_url(url, environ) == resolved


@pytest.mark.parametrize("endpoint", ["", "http://emulator:4566"])
def test_a_queue_url_of_another_account_is_refused(endpoint: str) -> None:
    with pytest.raises(ConfigurationError, match="210987654321"):
        resolve_queue_url(URL, {"AWS_ACCOUNT_ID": "210987654321", "AWS_ENDPOINT_URL": endpoint})


def test_a_sender_knows_the_queues_that_the_environment_names() -> None:
    environ = {
        "NOTES_QUEUE_URL": "http://localhost:1/000000000000/notes",
        "EMPTY_QUEUE_URL": "",
        "NOTES_DLQ_URL": "http://localhost:1/000000000000/notes-dlq",
        "AWS_ENDPOINT_URL": "http://127.0.0.1:2",
    }
    assert queue_sender(environ).queue_urls == {"NOTES_QUEUE_URL": "http://127.0.0.1:2/000000000000/notes"}
