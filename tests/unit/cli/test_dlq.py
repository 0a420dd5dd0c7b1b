"""What an operator does to a dead-letter queue: look, move back, empty, undo. SQS is moto's, in this process."""

import dataclasses
import json
import stat
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import pytest

from api_services.delivery.dead_letters import REASON_ATTRIBUTES, DeadLetterReason, with_reason
from api_services.errors import DependencyError, InvalidInputError
from api_services.interviews.messages import InterviewCompleted
from api_services.queues import INTERVIEW_COMPLETED
from cli.dlq.backup import purge, restore
from cli.dlq.messages import DeadMessage, MessageFilter, depth, peek
from cli.dlq.redrive import REDRIVE_LIMIT, RedriveResult, destination, redrive

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient

PREFIX = "sophia-dev-"
EVERYTHING = MessageFilter()


def reason(code: str) -> DeadLetterReason:
    return DeadLetterReason(
        error_class="NotFoundError", code=code, queue="interview-completed", message_id="first", receive_count=1
    )


@dataclasses.dataclass(frozen=True)
class Pair:
    """A queue and its dead-letter queue."""

    sqs: "SQSClient"
    queue_url: str
    dlq_url: str

    def bury(
        self, interview_id: str = "iv-1", *, body: str | None = None, code: str | None = None, **attributes: str
    ) -> str:
        """Put a message into the dead-letter queue; answers its id."""
        message = InterviewCompleted(
            interview_id=interview_id, organization_id="org-1", ended_at=datetime(2026, 1, 1, tzinfo=UTC)
        )
        carried: dict[str, Any] = {
            name: {"DataType": "String", "StringValue": value} for name, value in attributes.items()
        }
        if code is not None:
            carried = with_reason(carried, reason(code))
        sent = self.sqs.send_message(
            QueueUrl=self.dlq_url,
            MessageBody=message.body() if body is None else body,
            MessageAttributes=carried,
        )
        return sent["MessageId"]

    def redrive(self, **options: Any) -> RedriveResult:
        """`redrive` of this pair, executed unless said otherwise."""
        arguments: dict[str, Any] = {"wanted": EVERYTHING, "execute": True} | options
        return redrive(self.sqs, INTERVIEW_COMPLETED, dlq_url=self.dlq_url, destination_url=self.queue_url, **arguments)

    def waiting(self) -> tuple[int, int]:
        """Depth of the queue and of the dead-letter queue."""
        return depth(self.sqs, self.queue_url), depth(self.sqs, self.dlq_url)

    def received(self) -> list[DeadMessage]:
        """What the queue holds, looked at and given back."""
        return peek(self.sqs, self.queue_url, at_most=100, wanted=EVERYTHING)


@pytest.fixture
def sqs(aws: boto3.Session, monkeypatch: pytest.MonkeyPatch) -> "SQSClient":
    monkeypatch.setattr("cli.dlq.messages._LONG_POLL_SECONDS", 0)
    return aws.client("sqs")


def make_pair(sqs: "SQSClient", name: str, dlq_url: str | None = None) -> Pair:
    url = dlq_url or sqs.create_queue(QueueName=f"{name}-dlq")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    policy = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": 3})
    return Pair(sqs, sqs.create_queue(QueueName=name, Attributes={"RedrivePolicy": policy})["QueueUrl"], url)


@pytest.fixture
def pair(sqs: "SQSClient") -> Pair:
    return make_pair(sqs, f"{PREFIX}interview-completed")


def test_looking_takes_nothing_away(pair: Pair) -> None:
    ids = {pair.bury(f"iv-{number}") for number in range(12)}
    for _ in range(2):
        seen = peek(pair.sqs, pair.dlq_url, at_most=100, wanted=EVERYTHING)
        assert {message.message_id for message in seen} == ids
    assert pair.waiting() == (0, 12)


def test_a_plan_moves_nothing(pair: Pair) -> None:
    ids = {pair.bury(f"iv-{number}") for number in range(3)}
    assert set(pair.redrive(execute=False).moved) == ids
    assert pair.waiting() == (0, 3)


def test_a_letter_goes_back_with_its_body_and_attributes_but_without_the_reason_of_its_death(pair: Pair) -> None:
    pair.bury(code="not_found", requestId="req-1", tenant="blue")
    pair.redrive()
    (back,) = pair.received()
    assert (back.request_id, back.text("tenant"), back.redrive_count) == ("req-1", "blue", 1)
    assert not REASON_ATTRIBUTES & set(back.attributes)
    assert pair.waiting() == (1, 0)


def test_only_what_matches_is_moved(pair: Pair) -> None:
    pair.bury("iv-1", code="not_found")
    wanted = pair.bury("iv-2", code="quota_exhausted")
    result = pair.redrive(wanted=MessageFilter(error_code="quota_exhausted"))
    assert (result.moved, result.not_matching) == ([wanted], 1)
    assert pair.waiting() == (1, 1)


@pytest.mark.parametrize(
    ("wanted", "matches"),
    [
        (MessageFilter(request_id="req-1"), True),
        (MessageFilter(request_id="req-2"), False),
        (MessageFilter(message_id="first"), True),
        (MessageFilter(message_id="m-1"), True),
        (MessageFilter(min_age_seconds=50), True),
        (MessageFilter(min_age_seconds=150), False),
        (MessageFilter(error_code="x"), False),
    ],
)
def test_a_filter_reads_the_letter_and_not_its_body(wanted: MessageFilter, matches: bool) -> None:
    attributes = with_reason({"requestId": {"StringValue": "req-1"}}, reason("not_found"))
    message = DeadMessage("m-1", "r", "{}", attributes, {"SentTimestamp": "100000"})
    assert wanted.matches(message, now_seconds=200) is matches


def test_a_message_that_keeps_dying_is_not_moved_a_fourth_time_unless_forced(pair: Pair) -> None:
    message = pair.bury(redriveCount=str(REDRIVE_LIMIT))
    result = pair.redrive()
    assert (result.moved, result.over_limit) == ([], [message])
    assert pair.waiting() == (0, 1)
    assert pair.redrive(force=True).moved == [message]
    assert pair.received()[0].redrive_count == REDRIVE_LIMIT + 1


def test_a_body_that_the_consumer_would_drop_stays_where_it_can_be_seen(pair: Pair) -> None:
    message = pair.bury(body="{}")
    assert pair.redrive().invalid == [message]
    assert pair.waiting() == (0, 1)


def test_letters_that_come_back_while_it_runs_are_not_taken_again(pair: Pair) -> None:
    for number in range(5):
        pair.bury(f"iv-{number}")

    def die_again(_: DeadMessage) -> None:
        (message,) = pair.sqs.receive_message(QueueUrl=pair.queue_url)["Messages"]
        pair.sqs.send_message(QueueUrl=pair.dlq_url, MessageBody=message["Body"])  # pyright: ignore[reportTypedDictNotRequiredAccess]
        pair.sqs.delete_message(QueueUrl=pair.queue_url, ReceiptHandle=message["ReceiptHandle"])  # pyright: ignore[reportTypedDictNotRequiredAccess]

    assert len(pair.redrive(on_moved=die_again).moved) == 5
    assert pair.waiting() == (0, 5)


def test_nothing_is_deleted_when_the_destination_has_gone(pair: Pair) -> None:
    pair.bury()
    pair.sqs.delete_queue(QueueUrl=pair.queue_url)
    with pytest.raises(DependencyError, match="is still in sophia-dev-interview-completed-dlq"):
        pair.redrive()
    assert depth(pair.sqs, pair.dlq_url) == 1


@pytest.mark.parametrize("delay_seconds", [-1, 901, 3600])
def test_a_delay_that_sqs_would_refuse_is_refused_before_anything_moves(pair: Pair, delay_seconds: int) -> None:
    pair.bury()
    with pytest.raises(InvalidInputError, match=r"0\.\.900"):
        pair.redrive(delay_seconds=delay_seconds)
    assert pair.waiting() == (0, 1)


def test_the_destination_is_the_queue_whose_redrive_policy_names_the_dlq(pair: Pair) -> None:
    make_pair(pair.sqs, f"{PREFIX}report-generate")
    assert destination(pair.sqs, pair.dlq_url, stage_prefix=PREFIX, wanted=None) == pair.queue_url


def test_a_dlq_of_two_queues_asks_which_and_takes_none_but_those(pair: Pair) -> None:
    other = make_pair(pair.sqs, f"{PREFIX}other", pair.dlq_url)
    make_pair(pair.sqs, "sophia-prod-interview-completed", pair.dlq_url)
    with pytest.raises(InvalidInputError, match="sophia-dev-interview-completed, sophia-dev-other"):
        destination(pair.sqs, pair.dlq_url, stage_prefix=PREFIX, wanted=None)
    assert destination(pair.sqs, pair.dlq_url, stage_prefix=PREFIX, wanted=f"{PREFIX}other") == other.queue_url
    for stranger in ("sophia-prod-interview-completed", f"{PREFIX}interview-completed-dlq", "elsewhere"):
        with pytest.raises(InvalidInputError, match="is not a source"):
            destination(pair.sqs, pair.dlq_url, stage_prefix=PREFIX, wanted=stranger)


def test_a_dlq_that_no_queue_names_has_no_destination(sqs: "SQSClient") -> None:
    url = sqs.create_queue(QueueName=f"{PREFIX}orphan-dlq")["QueueUrl"]
    with pytest.raises(InvalidInputError, match="deploy the stage first"):
        destination(sqs, url, stage_prefix=PREFIX, wanted=None)


def test_a_purge_is_undone_from_its_backup(pair: Pair, tmp_path: Path) -> None:
    for number in range(12):
        pair.bury(f"iv-{number}", requestId=f"req-{number}")
    before = {
        message.body: message.attributes for message in peek(pair.sqs, pair.dlq_url, at_most=99, wanted=EVERYTHING)
    }
    backup = tmp_path / "messages.jsonl"
    assert purge(pair.sqs, pair.dlq_url, backup) == 12
    assert pair.waiting() == (0, 0)
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    assert restore(pair.sqs, pair.dlq_url, backup) == 12
    after = {
        message.body: message.attributes for message in peek(pair.sqs, pair.dlq_url, at_most=99, wanted=EVERYTHING)
    }
    assert after == before


def test_a_binary_attribute_survives_purge_and_restore(pair: Pair, tmp_path: Path) -> None:
    pair.sqs.send_message(
        QueueUrl=pair.dlq_url,
        MessageBody="x",
        MessageAttributes={"raw": {"DataType": "Binary", "BinaryValue": b"\x00\xff"}},
    )
    backup = tmp_path / "messages.jsonl"
    purge(pair.sqs, pair.dlq_url, backup)
    restore(pair.sqs, pair.dlq_url, backup)
    (message,) = peek(pair.sqs, pair.dlq_url, at_most=9, wanted=EVERYTHING)
    assert message.attributes["raw"]["BinaryValue"] == b"\x00\xff"


def test_a_purge_never_writes_over_an_earlier_backup(pair: Pair, tmp_path: Path) -> None:
    pair.bury()
    backup = tmp_path / "messages.jsonl"
    backup.write_text("precious")
    with pytest.raises(InvalidInputError, match="exists"):
        purge(pair.sqs, pair.dlq_url, backup)
    assert (backup.read_text(), pair.waiting()) == ("precious", (0, 1))


@pytest.mark.parametrize("line", ["not json", "[]", '{"body": "x"}', "7"])
def test_a_file_that_is_no_backup_is_refused_before_anything_is_sent(pair: Pair, tmp_path: Path, line: str) -> None:
    backup = tmp_path / "messages.jsonl"
    backup.write_text(line)
    with pytest.raises(InvalidInputError, match=r"messages\.jsonl:1 is not a message"):
        restore(pair.sqs, pair.dlq_url, backup)
    assert pair.waiting() == (0, 0)
