"""The settlement consumer as Lambda calls it, on the real database."""

from typing import Any

import pytest

from api_services.interviews.messages import InterviewCompleted, InterviewFailed
from api_services.interviews.models import InterviewStatus
from api_services.interviews.service import settlement_message
from api_services.queues import INTERVIEW_COMPLETED
from functions.interview_completed.settle import settle, settle_group
from functions.platform.records import RecordContext
from functions.platform.sqs_consumer import SqsConsumer, sqs_consumer
from tests.support.fakes import FakeDelivery, FakeFailureStore, FakeLambdaContext, sqs_event, sqs_record
from tests.support.worlds import World

pytestmark = pytest.mark.integration

Ended = InterviewCompleted | InterviewFailed


class Consumer:
    """The deployed handler with the test's collaborators, and a clock that each record takes time from."""

    def __init__(self, world: World, *, seconds_a_record: float = 0) -> None:
        self.context = FakeLambdaContext()
        self.delivery = FakeDelivery()
        self.groups: list[int] = []
        self._seconds = seconds_a_record
        self.handler: SqsConsumer[Any, Ended] = sqs_consumer(
            INTERVIEW_COMPLETED,
            self._settle,
            connect=lambda: world.settlement,
            group_handler=self._settle_group,
            delivery=lambda: self.delivery,
            failures=FakeFailureStore,
        )

    def _settle(self, collaborators: Any, message: Ended, context: RecordContext) -> None:
        self.context.remaining_ms -= self._seconds * 1000
        settle(collaborators, message, context)

    def _settle_group(self, collaborators: Any, messages: Any, contexts: Any) -> None:
        settle_group(collaborators, messages, contexts)
        self.groups.append(len(messages))

    def deliver(self, *records: dict[str, Any], remaining_seconds: float = 60) -> list[str]:
        self.context.remaining_ms = remaining_seconds * 1000
        answer = self.handler(sqs_event(*records), self.context)
        return [item["itemIdentifier"] for item in answer["batchItemFailures"]]


@pytest.fixture
def world(mongo_database: Any) -> World:
    return World(mongo_database)


def test_time_that_runs_out_returns_the_rest_and_redelivering_all_charges_none_twice(world: World) -> None:
    interviews = [world.completed(organization=f"org-{number}") for number in range(5)]
    records = [sqs_record(f"t-{n}", settlement_message(each)) for n, each in enumerate(interviews, 1)]
    consumer = Consumer(world, seconds_a_record=4)
    assert consumer.deliver(*records, remaining_seconds=14) == ["t-4", "t-5"]
    assert [world.stored(each).settled_at is not None for each in interviews] == [True, True, True, False, False]
    settled = [world.stored(each) for each in interviews[:3]]
    assert consumer.deliver(*records) == []
    assert [world.stored(each) for each in interviews[:3]] == settled
    assert len(world.queue.messages("report-generate")) == 5
    for number in range(5):
        assert world.amounts(f"org-{number}") == [-10]
    world.assert_consistent()


def test_a_stale_failure_of_a_completed_interview_changes_nothing(world: World) -> None:
    interview = world.completed()
    consumer = Consumer(world)
    consumer.deliver(sqs_record("m-1", settlement_message(interview)))
    before = world.snapshot()
    stale = InterviewFailed(
        interview_id=interview.interview_id, organization_id="acme", ended_at=world.now, failure_code="no_show"
    )
    assert consumer.deliver(sqs_record("m-2", stale)) == []
    assert world.snapshot() == before
    assert world.stored(interview).status is InterviewStatus.COMPLETED


def test_an_organizations_records_are_settled_together_and_a_bad_one_among_them_fails_alone(world: World) -> None:
    good = [world.completed() for _ in range(4)]
    consumer = Consumer(world)
    records = [sqs_record(f"m-{n}", settlement_message(each)) for n, each in enumerate(good)]
    assert consumer.deliver(*records[:2]) == []
    assert consumer.groups == [2]
    unknown = InterviewCompleted(interview_id="iv-unknown", organization_id="acme", ended_at=world.now)
    assert consumer.deliver(*records[2:], sqs_record("m-x", unknown)) == []
    assert [reason.code for _, reason in consumer.delivery.dead_letters] == ["not_found"]
    assert all(world.stored(each).settled_at is not None for each in good)
    world.assert_consistent()
