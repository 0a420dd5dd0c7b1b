"""Arbitrary events: the answer is exactly the contract, or the event is refused as none of SQS."""

import io
import json
import logging
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from api_services.errors import BusyError, ConfigurationError, DependencyError, InvalidInputError, RateLimitedError
from functions.platform.records import RecordContext, is_object
from tests.support.fakes import FakeDelivery, FakeFailureStore, FakeLambdaContext
from tests.unit.functions.platform.consumers import Ended, Rig, completed

EVENTS = 10_000
DRAWN_EVENTS = 150

ERRORS: dict[str, Exception] = {
    "permanent": InvalidInputError("No."),
    "transient": BusyError("Busy."),
    "later": RateLimitedError("Later.", retry_after_seconds=float("inf")),
    "unknown": ZeroDivisionError(),
    "memory": MemoryError(),
}
INTERVIEWS = ["ok", "ok2", *ERRORS]
ODD_BODIES = [
    "",
    "null",
    "true",
    "[]",
    "{",
    "NaN",
    "1e999",
    "\ud800",
    '{"interviewId":5}',
    '{"s3BucketName":"b","s3Key":"k"}',
]


def handle(message: Ended, context: RecordContext) -> None:
    if message.interview_id in ERRORS:
        raise ERRORS[message.interview_id].with_traceback(None)


def refuse(messages: object) -> None:
    raise DependencyError("Together it cannot be done.")


class Fuzzed:
    """One consumer of each kind, used warm for all events, with one thing broken at a time."""

    def __init__(self) -> None:
        self.rigs = [
            Rig(handle),
            Rig(handle, changes={"fifo": True}),
            Rig(handle, group_handler=refuse),
            Rig(handle, group_handler=refuse, changes={"fifo": True}),
            Rig(handle, changes={"record_concurrency": 2}),
        ]
        self.answered = 0
        self.refused = 0

    def check(self, event: Any, rig: Rig, remaining_ms: int, broken: str) -> None:
        rig.delivery, rig.failures = FakeDelivery(), FakeFailureStore()
        rig.handled.clear()
        rig.delivery.fail_with = OSError("down") if broken == "delivery" else None
        rig.failures.fail_with = OSError("down") if broken == "failures" else None
        try:
            answer: Any = rig.consumer(event, FakeLambdaContext(remaining_ms))
        except InvalidInputError:
            self.refused += 1
            assert not is_sqs_event(event)
            assert rig.handled == []
            return
        self.answered += 1
        assert is_sqs_event(event)
        ids = [item["itemIdentifier"] for item in answer["batchItemFailures"]]
        assert json.dumps(answer) == json.dumps({"batchItemFailures": [{"itemIdentifier": each} for each in ids]})
        assert len(ids) == len(set(ids))
        assert set(ids) <= {record["messageId"] for record in event["Records"]}
        dead = {record["messageId"] for record, _ in rig.delivery.dead_letters}
        assert not dead & set(ids), "a message is in the dead-letter queue and comes back too"
        if remaining_ms < 6_000:
            assert rig.handled == []


def is_sqs_event(event: Any) -> bool:
    if not is_object(event) or not isinstance(event.get("Records"), list):
        return False
    items: list[Any] = event["Records"]
    return all(is_object(item) and isinstance(item.get("messageId"), str) and item["messageId"] for item in items)


@pytest.fixture
def fuzzed() -> Iterator[Fuzzed]:
    """Quiet: what is logged is other tests' subject."""
    logging.disable(logging.CRITICAL)
    with redirect_stdout(io.StringIO()):
        yield Fuzzed()
    logging.disable(logging.NOTSET)


def anything(random: Random, depth: int = 2) -> Any:
    """Any JSON value."""
    makers: list[Callable[[], Any]] = [
        lambda: None,
        lambda: random.random() < 0.5,
        lambda: random.choice([0, -1, 7, 2**70, 0.5, float("nan"), float("-inf")]),
        lambda: "".join(random.choices('az"{}[]\\\x00\u2028\U0001f469\ud800', k=random.randrange(6))),
    ]
    if depth:
        makers.append(lambda: [anything(random, depth - 1) for _ in range(random.randrange(3))])
        makers.append(
            lambda: {
                random.choice(["Records", "messageId", "requestId", "stringValue", "x"]): anything(random, depth - 1)
                for _ in range(random.randrange(3))
            }
        )
    return random.choice(makers)()


def record(random: Random) -> Any:
    """Mostly a record of SQS, with any part of it replaced by anything."""
    if random.random() < 0.05:
        return anything(random)
    good = completed(random.choice(INTERVIEWS), random.choice(["org-1", "org-2"])).body()
    cut = good[: random.randrange(len(good))]
    made: dict[str, Any] = {
        "messageId": random.choice(["m-1", "m-2", "m-3", "m-4"]),
        "receiptHandle": "receipt",
        "body": random.choice([good, good, good, random.choice(ODD_BODIES), cut]),
        "attributes": {
            "ApproximateReceiveCount": random.choice(["1", "3", "999", "x", "", None]),
            "MessageGroupId": random.choice(["a", "b", None]),
        },
        "messageAttributes": {"requestId": {"stringValue": random.choice(["req-1", "", None]), "dataType": "String"}},
    }
    for key in list(made):
        if random.random() < 0.06:
            made[key] = anything(random)
        elif random.random() < 0.02:
            del made[key]
    return made


def event(random: Random) -> Any:
    if random.random() < 0.05:
        return anything(random)
    if random.random() < 0.05:
        return {"Records": anything(random)}
    return {"Records": [record(random) for _ in range(random.randrange(6))]}


def test_ten_thousand_events_are_answered_by_the_contract_or_refused_as_none_of_sqs(fuzzed: Fuzzed) -> None:
    random = Random(20260101)  # noqa: S311
    for number in range(EVENTS):
        fuzzed.check(
            event(random),
            random.choice(fuzzed.rigs),
            random.choice([60_000, 60_000, 60_000, 0, 5_999, -1]),
            random.choice(["nothing", "nothing", "delivery", "failures"]),
        )
        assert fuzzed.answered + fuzzed.refused == number + 1
    assert fuzzed.answered > EVENTS / 2
    assert fuzzed.refused > EVENTS / 50


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=4,
)
drawn_records = st.fixed_dictionaries(
    {
        "messageId": st.sampled_from(["m-1", "m-2"]) | st.text(max_size=3),
        "body": st.sampled_from([completed(each).body() for each in INTERVIEWS]) | st.text(max_size=9) | json_values,
    },
    optional={"attributes": json_values, "messageAttributes": json_values},
)
drawn_events = st.fixed_dictionaries({"Records": st.lists(drawn_records, max_size=4)}) | json_values


def test_drawn_events_are_answered_by_the_contract_or_refused_as_none_of_sqs(fuzzed: Fuzzed) -> None:
    @settings(max_examples=DRAWN_EVENTS, deadline=None, derandomize=True, database=None)
    @given(event=drawn_events, kind=st.integers(0, 4), remaining_ms=st.sampled_from([60_000, 0]))
    def check(event: Any, kind: int, remaining_ms: int) -> None:
        fuzzed.check(event, fuzzed.rigs[kind], remaining_ms, "nothing")

    check()


@pytest.mark.parametrize("sent", [None, {}, {"Records": [{"messageId": "m-1", "body": "null"}]}])
def test_a_connection_that_fails_raises_only_where_there_is_something_to_do(sent: Any) -> None:
    rig = Rig(handle)
    rig.connect_error = ConfigurationError("MongoDB needs a replica set.")
    with pytest.raises(ConfigurationError if sent else InvalidInputError):
        rig.consumer(sent, None)
