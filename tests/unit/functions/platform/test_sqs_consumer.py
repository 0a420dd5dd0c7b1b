"""The table of what becomes of a message, row by row."""

import asyncio
import json
import logging
from contextvars import ContextVar
from typing import Any

import pytest

from api_services import metrics
from api_services.errors import (
    BusyError,
    ConfigurationError,
    InvalidInputError,
    NotFoundError,
    RateLimitedError,
)
from api_services.queues import INTERVIEW_COMPLETED
from api_services.request_context import current_request_id, request_context
from functions.platform.records import RecordContext
from functions.platform.sqs_consumer import sqs_consumer
from tests.support.fakes import FakeLambdaContext, sqs_event, sqs_record
from tests.unit.functions.platform.consumers import Ended, Rig, batch, completed, nothing, raising


def test_the_answer_is_exactly_the_contract_and_only_the_failed_message_returns() -> None:
    rig = Rig(raising({"bad": ValueError("no")}))
    answer = rig.consumer(sqs_event(*batch("one", "bad", "two")), FakeLambdaContext())
    assert json.dumps(answer) == '{"batchItemFailures": [{"itemIdentifier": "m-2"}]}'
    assert rig.handled == ["one", "bad", "two"]


def test_what_a_record_handler_returns_cannot_become_the_answer() -> None:
    def hand_made(message: Ended, context: RecordContext) -> Any:
        return {"BatchItemFailures": [{"ItemIdentifier": context.message_id}]}

    answer = Rig(hand_made).consumer(sqs_event(*batch("one")), FakeLambdaContext())
    assert json.dumps(answer) == '{"batchItemFailures": []}'


def test_no_records_need_no_connection() -> None:
    rig = Rig()
    assert rig.call() == []
    assert rig.connects == 0


NOT_SQS_EVENTS: list[Any] = [
    None,
    [],
    "Records",
    {},
    {"Records": None},
    {"Records": {}},
    {"Records": ["x"]},
    {"Records": [None]},
    {"Records": [{}]},
    {"Records": [{"messageId": ""}]},
    {"Records": [{"messageId": 5}]},
    {"Records": [{"messageId": ["m-1"]}]},
    {"Records": [{"messageId": None, "body": "{}"}]},
    {"Records": [{"MessageId": "m-1", "body": "{}"}]},
]


@pytest.mark.parametrize("event", NOT_SQS_EVENTS)
def test_an_event_that_is_none_of_sqs_raises_before_anything_runs(event: Any) -> None:
    rig = Rig()
    with pytest.raises(InvalidInputError, match="event source mapping") as caught:
        rig.consumer(event, FakeLambdaContext())
    assert caught.value.code == "malformed_event"
    assert rig.connects == 0


def test_one_record_without_an_id_stops_the_batch_before_its_neighbours_run() -> None:
    rig = Rig()
    with pytest.raises(InvalidInputError):
        rig.consumer(sqs_event(*batch("one"), {"body": "{}"}), FakeLambdaContext())
    assert rig.handled == []


def test_a_failed_connection_raises_and_the_next_invocation_tries_again() -> None:
    rig = Rig()
    rig.connect_error = ConfigurationError("MongoDB needs a replica set.")
    for _ in range(2):
        with pytest.raises(ConfigurationError):
            rig.call(*batch("one"))
    rig.connect_error = None
    assert rig.call(*batch("one")) == []
    assert rig.connects == 3
    assert rig.handled == ["one"]


def test_a_warm_invocation_behaves_as_the_first() -> None:
    lock = asyncio.Lock()

    async def work(interview_id: str) -> None:
        async with lock:
            await asyncio.sleep(0)
            if interview_id == "bad":
                raise ValueError("no")

    rig = Rig(lambda message, context: asyncio.run(work(message.interview_id)))
    for _ in range(3):
        assert rig.call(*batch("bad")) == ["m-1"]
        assert rig.call(*batch("bad")) == ["m-1"]
        assert rig.call(*batch("good")) == []
    assert rig.handled == ["bad", "bad", "good"] * 3
    assert rig.connects == 1


def test_a_fifo_group_that_failed_is_run_again_by_the_next_invocation() -> None:
    rig = Rig(raising({"bad": ValueError("no")}), changes={"fifo": True})
    assert rig.call(*batch("bad", "next")) == ["m-1", "m-2"]
    assert rig.call(*batch("next")) == []


def test_each_record_runs_under_its_own_request_id_and_leaves_no_trace() -> None:
    seen: list[str | None] = []
    mine: ContextVar[str] = ContextVar("mine", default="untouched")

    def look(message: Ended, context: RecordContext) -> None:
        seen.append(current_request_id())
        assert context.request_id == current_request_id()
        assert mine.get() == "untouched"
        mine.set(message.interview_id)

    first, second, third = batch("one", "two", "three")
    first["messageAttributes"] = {"requestId": {"stringValue": "req-1", "dataType": "String"}}
    third["messageAttributes"] = {"requestId": {"stringValue": "req-3", "dataType": "String"}}
    with request_context("outside"):
        Rig(look).call(first, second, third)
        assert current_request_id() == "outside"
    assert seen == ["req-1", None, "req-3"]
    assert mine.get() == "untouched"


def test_a_permanent_error_goes_to_the_dead_letter_queue_and_counts_as_handled(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rig = Rig(raising({"gone": NotFoundError("No such interview.", interview_id="gone")}))
    assert rig.call(*batch("one", "gone")) == []
    ((record, reason),) = rig.delivery.dead_letters
    assert record["messageId"] == "m-2"
    assert (reason.error_class, reason.code) == ("NotFoundError", "not_found")
    assert (reason.queue, reason.message_id, reason.receive_count) == ("interview-completed", "m-2", 1)
    assert rig.failures.by_id()["m-2"].outcome == "dead_lettered"
    assert f'"{metrics.RECORDS_DEAD_LETTERED}": 1' in capsys.readouterr().out


def test_a_permanent_error_whose_dead_letter_cannot_be_sent_is_reported_as_failed() -> None:
    rig = Rig(raising({"gone": NotFoundError("No such interview.")}))
    rig.delivery.fail_with = OSError("the queue does not answer")
    assert rig.call(*batch("gone", "one")) == ["m-1"]
    assert rig.failures.by_id()["m-1"].outcome == "failed"


def test_a_transient_error_waits_as_long_as_it_says_and_is_reported_as_failed() -> None:
    rig = Rig(raising({"slow": RateLimitedError("Too many.", retry_after_seconds=60), "busy": BusyError("Busy.")}))
    assert rig.call(*batch("slow", "one", "busy")) == ["m-1", "m-3"]
    waits = dict(rig.delivery.visibilities)
    assert 60 <= waits["m-1"] <= 67
    assert 3 <= waits["m-3"] <= 5
    assert rig.failures.by_id()["m-1"].outcome == "deferred"


def test_a_transient_error_is_reported_as_failed_even_if_its_visibility_cannot_be_set() -> None:
    rig = Rig(raising({"busy": BusyError("Busy.")}))
    rig.delivery.fail_with = OSError("the queue does not answer")
    assert rig.call(*batch("busy")) == ["m-1"]


def test_an_unknown_error_leaves_the_message_to_its_normal_redelivery() -> None:
    rig = Rig(raising({"bad": KeyError("x")}))
    assert rig.call(*batch("bad")) == ["m-1"]
    assert rig.delivery.visibilities == []
    assert rig.delivery.dead_letters == []
    failure = rig.failures.by_id()["m-1"]
    assert (failure.outcome, failure.code, failure.error_class) == ("failed", "unexpected", "KeyError")
    assert failure.frames[0].startswith("functions.platform.runner:")
    assert failure.frames[-1].startswith("tests.unit.functions.platform.consumers:")


@pytest.mark.parametrize("error", [MemoryError(), RecursionError(), asyncio.CancelledError(), AssertionError("x")])
def test_whatever_a_record_handler_lets_out_fails_its_own_record_only(error: BaseException) -> None:
    rig = Rig(raising({"bad": error}))
    assert rig.call(*batch("one", "bad", "two")) == ["m-2"]
    assert rig.handled == ["one", "bad", "two"]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(1)])
@pytest.mark.parametrize("concurrency", [1, 3])
def test_a_process_that_is_being_ended_is_not_held_up(error: BaseException, concurrency: int) -> None:
    rig = Rig(raising({"bad": error}), changes={"record_concurrency": concurrency})
    with pytest.raises(type(error)):
        rig.call(*batch("one", "bad", "two"))


def test_a_failing_failure_store_changes_no_outcome() -> None:
    rig = Rig(raising({"bad": ValueError("no"), "gone": NotFoundError("No such interview.")}))
    rig.failures.fail_with = OSError("no primary")
    assert rig.call(*batch("bad", "gone", "one"), sqs_record("m-4", "null")) == ["m-1"]
    assert len(rig.delivery.dead_letters) == 1


def test_time_that_runs_out_leaves_the_rest_untouched(capsys: pytest.CaptureFixture[str]) -> None:
    context = FakeLambdaContext(remaining_ms=14_000)

    def work(message: Ended, record_context: RecordContext) -> None:
        context.remaining_ms -= 4_000

    rig = Rig(work)
    failed = rig.call(*batch("t-1", "t-2", "t-3", "t-4", "t-5"), context=context)
    assert rig.handled == ["t-1", "t-2", "t-3"]
    assert failed == ["m-4", "m-5"]
    assert rig.delivery.visibilities == []
    assert rig.failures.failures == []
    assert f'"{metrics.RECORDS_NOT_STARTED}": 2' in capsys.readouterr().out


def test_a_record_handler_sees_the_time_that_is_left() -> None:
    context = FakeLambdaContext(remaining_ms=42_000)
    rig = Rig()
    rig.call(*batch("one"), context=context)
    context.remaining_ms = 7_000
    assert rig.contexts[0].remaining_seconds() == 7.0


def test_a_message_twice_in_a_batch_is_handled_once_and_reported_once() -> None:
    rig = Rig(raising({"bad": ValueError("no")}))
    record = batch("bad")[0]
    assert rig.call(record, *[dict(record, receiptHandle=f"later-{n}") for n in range(2)]) == ["m-1"]
    assert rig.handled == ["bad"]


def fifo(message_id: str, interview_id: str, group: str | None) -> dict[str, Any]:
    attributes = {"ApproximateReceiveCount": "1"} | ({"MessageGroupId": group} if group else {})
    return sqs_record(message_id, completed(interview_id), attributes=attributes)


@pytest.mark.parametrize("concurrency", [1, 4])
def test_after_a_failure_the_later_records_of_its_fifo_group_fail_unrun(concurrency: int) -> None:
    rig = Rig(raising({"bad": ValueError("no")}), changes={"fifo": True, "record_concurrency": concurrency})
    failed = rig.call(
        fifo("a-1", "one", "a"),
        fifo("b-1", "bad", "b"),
        fifo("a-2", "two", "a"),
        fifo("b-2", "never", "b"),
        fifo("c-1", "three", "c"),
        fifo("b-3", "never", "b"),
    )
    assert failed == ["b-1", "b-2", "b-3"]
    assert sorted(rig.handled) == ["bad", "one", "three", "two"]


def test_a_dead_lettered_record_does_not_hold_up_its_fifo_group() -> None:
    rig = Rig(raising({"gone": NotFoundError("No such interview.")}), changes={"fifo": True})
    assert rig.call(fifo("a-1", "gone", "a"), fifo("a-2", "two", "a")) == []
    assert rig.handled == ["gone", "two"]


def test_time_that_runs_out_in_a_fifo_group_leaves_its_rest_in_order() -> None:
    context = FakeLambdaContext(remaining_ms=11_000)

    def work(message: Ended, record_context: RecordContext) -> None:
        context.remaining_ms -= 6_000

    rig = Rig(work, changes={"fifo": True})
    assert rig.call(fifo("a-1", "one", "a"), fifo("a-2", "two", "a"), fifo("a-3", "x", "a"), context=context) == [
        "a-2",
        "a-3",
    ]


def test_records_of_an_organization_are_handled_together() -> None:
    rig = Rig(group_handler=lambda messages: None)
    records = [
        sqs_record("m-1", completed("a1", "org-a")),
        sqs_record("m-2", completed("b1", "org-b")),
        sqs_record("m-3", completed("a2", "org-a")),
        sqs_record("m-4", "null"),
        sqs_record("m-5", completed("a3", "org-a")),
    ]
    assert rig.call(*records) == []
    assert rig.groups == [["a1", "a2", "a3"]]
    assert rig.handled == ["b1"]


def test_a_group_that_fails_is_handled_one_by_one_with_each_its_own_outcome() -> None:
    def refuse(messages: object) -> None:
        raise NotFoundError("One of them is not there.")

    rig = Rig(raising({"a2": NotFoundError("No such interview."), "a3": ValueError("no")}), group_handler=refuse)
    assert rig.call(*batch("a1", "a2", "a3", "a4")) == ["m-3"]
    assert rig.groups == [["a1", "a2", "a3", "a4"]]
    assert rig.handled == ["a1", "a2", "a3", "a4"]
    assert [record["messageId"] for record, _ in rig.delivery.dead_letters] == ["m-2"]


def test_a_group_has_the_request_id_that_its_records_share_or_none() -> None:
    seen: list[str | None] = []
    rig = Rig(group_handler=lambda messages: seen.append(current_request_id()))
    for ids in (["req-1", "req-1"], ["req-1", "req-2"]):
        records = batch("a1", "a2")
        for record, request_id in zip(records, ids, strict=True):
            record["messageAttributes"] = {"requestId": {"stringValue": request_id, "dataType": "String"}}
        assert rig.call(*records) == []
    assert seen == ["req-1", None]


def test_no_group_is_started_when_time_is_short() -> None:
    rig = Rig(group_handler=lambda messages: None)
    assert rig.call(*batch("a1", "a2"), context=FakeLambdaContext(remaining_ms=5_000)) == ["m-1", "m-2"]
    assert rig.groups == []
    assert rig.handled == []


def test_without_a_group_handler_a_group_key_changes_nothing() -> None:
    rig = Rig()
    assert rig.call(*batch("a1", "a2")) == []
    assert rig.handled == ["a1", "a2"]


def test_concurrency_is_bounded_and_the_answer_keeps_the_order_of_the_batch() -> None:
    import threading

    running: list[int] = []
    most: list[int] = []
    lock = threading.Lock()
    together = threading.Barrier(3, timeout=5)

    def work(message: Ended, context: RecordContext) -> None:
        with lock:
            running.append(1)
            most.append(len(running))
        together.wait()
        with lock:
            running.pop()
        if message.interview_id.endswith("bad"):
            raise ValueError("no")

    rig = Rig(work, changes={"record_concurrency": 3})
    failed = rig.call(*batch("1", "2-bad", "3", "4", "5", "6-bad", "7-bad", "8", "9"))
    assert failed == ["m-2", "m-6", "m-7"]
    assert max(most) == 3


def test_each_thread_has_the_request_id_of_its_record() -> None:
    seen: dict[str, str | None] = {}

    def look(message: Ended, context: RecordContext) -> None:
        seen[message.interview_id] = current_request_id()

    records = batch("1", "2", "3", "4")
    for record in records[1:]:
        record["messageAttributes"] = {"requestId": {"stringValue": f"req-{record['messageId']}"}}
    Rig(look, changes={"record_concurrency": 2}).call(*records)
    assert seen == {"1": None, "2": "req-m-2", "3": "req-m-3", "4": "req-m-4"}


def test_an_error_text_of_a_validation_inside_a_handler_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    def validate(message: Ended, context: RecordContext) -> None:
        type(message).model_validate({"interviewId": "candidate-74c1"})

    rig = Rig(validate)
    assert rig.call(*batch("one")) == ["m-1"]
    assert caplog.records
    assert not any("candidate-74c1" in repr(line.__dict__) for line in caplog.records)


def test_a_batch_that_is_handled_writes_nothing(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    rig = Rig(nothing)
    assert rig.call(*batch("one", "two")) == []
    assert capsys.readouterr().out == ""
    assert caplog.records == []
    assert rig.failures.failures == []


def test_a_fifo_group_that_fails_together_is_handled_in_order_up_to_its_first_failure() -> None:
    def refuse(messages: object) -> None:
        raise NotFoundError("One of them is not there.")

    rig = Rig(raising({"bad": ValueError("no")}), group_handler=refuse, changes={"fifo": True})
    records = [fifo(f"a-{number}", each, "a") for number, each in enumerate(["one", "bad", "never", "never"], 1)]
    assert rig.call(*records, fifo("b-1", "two", "b")) == ["a-2", "a-3", "a-4"]
    assert rig.groups == [["one", "bad", "never", "never"]]
    assert rig.handled == ["one", "bad", "two"]


class UnspeakableError(Exception):
    """An error whose text cannot be made."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


def test_an_error_whose_text_cannot_be_made_is_that_records_failure_alone() -> None:
    rig = Rig(raising({"bad": UnspeakableError()}))
    assert rig.call(*batch("one", "bad", "two")) == ["m-2"]
    assert rig.handled == ["one", "bad", "two"]


async def _coroutine(dependencies: str, message: Ended, context: RecordContext) -> None:
    """Its call handles nothing."""


def _generator(dependencies: str, message: Ended, context: RecordContext) -> Any:
    yield


def _plain(dependencies: str, message: Ended, context: RecordContext) -> None:
    """Its call handles the message."""


class _AsyncCallable:
    async def __call__(self, dependencies: str, message: Ended, context: RecordContext) -> None:
        """Its call handles nothing."""


@pytest.mark.parametrize("handler", [_coroutine, _generator, _AsyncCallable()])
def test_a_handler_whose_call_would_handle_nothing_is_refused_when_the_consumer_is_made(handler: Any) -> None:
    with pytest.raises(TypeError, match="Write it as a plain function"):
        sqs_consumer(INTERVIEW_COMPLETED, handler, connect=lambda: "")
    with pytest.raises(TypeError, match="Write it as a plain function"):
        sqs_consumer(INTERVIEW_COMPLETED, _plain, connect=lambda: "", group_handler=handler)
