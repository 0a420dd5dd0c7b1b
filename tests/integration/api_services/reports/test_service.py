"""Reports: leases, attempts, what is paid for, and what is left after a fault."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest

from api_services.errors import (
    AppError,
    BusyError,
    DependencyError,
    InvalidStateError,
    NotFoundError,
    QuotaExhaustedError,
    RateLimitedError,
)
from api_services.llm.client import (
    Answer,
    ChatMessage,
    Embeddings,
    LanguageModel,
    MalformedAnswerError,
    RefusedAnswerError,
    RequestRefusedError,
    TruncatedAnswerError,
)
from api_services.llm.costs import TokenUsage
from api_services.reports.models import MAX_ATTEMPTS, ReportContent, ReportStatus
from api_services.reports.repository import ReportRepository
from api_services.reports.service import (
    ReportCollaborators,
    ReportOutcome,
    generate_report,
    get_report,
    reset_report,
)
from api_services.tracing import NoTracer
from tests.support.crashes import process_that_dies
from tests.support.worlds import World

pytestmark = pytest.mark.integration

CONTENT = ReportContent(
    summary="Good.", competencies=[], strengths=["logs"], concerns=[], overall_score=70, recommendation="hire"
)
USAGE = TokenUsage(1_000, 0, 200)
COST = 650


class FakeLanguageModel(LanguageModel):
    """Plays `faults` one by one, then answers; counts calls."""

    def __init__(self, *faults: Exception) -> None:
        self.faults = list(faults)
        self.calls: list[dict[str, Any]] = []

    def structured(self, response_model: Any, messages: Sequence[ChatMessage], **options: Any) -> Answer[Any]:
        self.calls.append({"messages": messages, **options})
        if self.faults:
            raise self.faults.pop(0)
        return Answer(CONTENT, CONTENT.model_dump_json(by_alias=True), "gpt-5-mini", USAGE, COST)

    def embed(self, texts: Sequence[str], **options: Any) -> Embeddings:
        raise AssertionError("reports embed nothing")


class Reporter:
    """A consumer of the report queue."""

    def __init__(self, world: World, llm: FakeLanguageModel, reports: ReportRepository | None = None) -> None:
        self.world = world
        self.llm = llm
        self.collaborators = ReportCollaborators(
            world.interviews, reports or world.reports, llm, "gpt-5-mini", NoTracer()
        )

    def deliver(self, interview_id: str, *, remaining: float = 300) -> ReportOutcome:
        return generate_report(
            self.collaborators, interview_id, remaining_seconds=lambda: remaining, clock=lambda: self.world.now
        )


def reporter(world: World, *faults: Exception) -> Reporter:
    return Reporter(world, FakeLanguageModel(*faults))


def report_of(world: World, interview_id: str) -> Any:
    return get_report(world.reports, world.interviews, interview_id)


def is_pending(world: World, interview_id: str) -> bool:
    waiting = world.interviews.awaiting_report(settled_before=world.now + timedelta(days=1), limit=100)
    return interview_id in [one.interview_id for one in waiting]


def test_a_report_is_written_with_its_model_tokens_and_cost(world: World) -> None:
    interview_id = world.settled().interview_id
    assert report_of(world, interview_id).status is ReportStatus.NOT_STARTED
    one = reporter(world)
    assert one.deliver(interview_id) is ReportOutcome.WRITTEN
    report = report_of(world, interview_id)
    assert report.status is ReportStatus.COMPLETED
    assert report.content == CONTENT
    assert (report.model, report.usage.total_tokens, report.cost_micro_usd) == ("gpt-5-mini", 1_200, COST)
    assert report.attempt_count == 1
    assert not is_pending(world, interview_id)


def test_a_finished_report_is_skipped(world: World) -> None:
    interview_id = world.settled().interview_id
    one = reporter(world)
    one.deliver(interview_id)
    before = world.snapshot()
    assert one.deliver(interview_id) is ReportOutcome.ALREADY_WRITTEN
    assert world.snapshot() == before
    assert len(one.llm.calls) == 1


def test_of_many_consumers_at_once_one_works_and_the_others_come_again_when_its_lease_ends(world: World) -> None:
    interview_id = world.settled().interview_id
    one = reporter(world)

    def deliver(_: int) -> object:
        try:
            return one.deliver(interview_id)
        except BusyError as exc:
            return exc

    with ThreadPoolExecutor(6) as pool:
        results = list(pool.map(deliver, range(12)))
    assert results.count(ReportOutcome.WRITTEN) == 1
    assert len(one.llm.calls) == 1
    for result in results:
        if isinstance(result, BusyError):
            assert result.retry_after_seconds is not None
            assert 300 <= result.retry_after_seconds <= 302


def test_the_report_of_a_consumer_that_was_killed_is_taken_over_when_its_lease_has_expired(world: World) -> None:
    interview_id = world.settled().interview_id
    world.reports.claim(interview_id, "acme", now=world.now, lease_expires_at=world.now + timedelta(seconds=300))
    one = reporter(world)
    with pytest.raises(BusyError):
        one.deliver(interview_id)
    world.pass_time(seconds=300)
    assert one.deliver(interview_id) is ReportOutcome.WRITTEN
    assert report_of(world, interview_id).attempt_count == 2


def test_a_consumer_that_outlived_its_lease_changes_nothing(world: World) -> None:
    interview_id = world.settled().interview_id

    class SlowModel(FakeLanguageModel):
        def structured(self, response_model: Any, messages: Sequence[ChatMessage], **options: Any) -> Answer[Any]:
            if not self.calls:
                world.pass_time(seconds=301)
                self.calls.append({})
                world.reports.claim(
                    interview_id, "acme", now=world.now, lease_expires_at=world.now + timedelta(seconds=300)
                )
            return super().structured(response_model, messages, **options)

    one = Reporter(world, SlowModel())
    assert one.deliver(interview_id) is ReportOutcome.LOST_CLAIM
    assert report_of(world, interview_id).status is ReportStatus.PROCESSING


def test_a_lease_lasts_as_long_as_the_function_may_run(world: World) -> None:
    interview_id = world.settled().interview_id
    leases: list[Any] = []

    class LookingModel(FakeLanguageModel):
        def structured(self, response_model: Any, messages: Sequence[ChatMessage], **options: Any) -> Answer[Any]:
            leases.append(report_of(world, interview_id).lease_expires_at)
            return super().structured(response_model, messages, **options)

    one = Reporter(world, LookingModel())
    one.deliver(interview_id, remaining=120)
    assert leases == [world.now + timedelta(seconds=120)]
    assert one.llm.calls[0]["timeout_seconds"] == 110


def test_a_refusal_is_one_call_and_final_with_its_tokens_recorded(world: World) -> None:
    interview_id = world.settled().interview_id
    one = reporter(world, RefusedAnswerError("I can't help with that.", TokenUsage(50, 0, 11)))
    assert one.deliver(interview_id) is ReportOutcome.FAILED
    report = report_of(world, interview_id)
    assert (report.status, report.failure_code) == (ReportStatus.FAILED, "refused")
    assert report.failure_detail == "I can't help with that."
    assert report.usage.total_tokens == 61
    assert one.deliver(interview_id) is ReportOutcome.FAILED
    assert len(one.llm.calls) == 1
    assert not is_pending(world, interview_id)


def test_a_truncated_answer_gets_one_further_call_with_more_room(world: World) -> None:
    interview_id = world.settled().interview_id
    one = reporter(world, TruncatedAnswerError(TokenUsage(1_000, 0, 6_000)))
    assert one.deliver(interview_id) is ReportOutcome.WRITTEN
    first, second = (call["max_output_tokens"] for call in one.llm.calls)
    assert second > first
    report = report_of(world, interview_id)
    assert report.usage.total_tokens == 7_000 + 1_200
    assert report.cost_micro_usd > COST


def test_an_answer_truncated_twice_is_final(world: World) -> None:
    interview_id = world.settled().interview_id
    one = reporter(world, *[TruncatedAnswerError(TokenUsage(10, 0, 90)) for _ in range(2)])
    assert one.deliver(interview_id) is ReportOutcome.FAILED
    report = report_of(world, interview_id)
    assert (report.failure_code, report.usage.total_tokens) == ("truncated", 200)
    one.deliver(interview_id)
    assert len(one.llm.calls) == 2


def test_a_rate_limit_gives_the_report_back_and_tells_the_queue_when_to_come_again(world: World) -> None:
    interview_id = world.settled().interview_id
    one = reporter(world, RateLimitedError("slow down", retry_after_seconds=40))
    with pytest.raises(RateLimitedError) as limited:
        one.deliver(interview_id)
    assert limited.value.retry_after_seconds == 40
    report = report_of(world, interview_id)
    assert (report.status, report.attempt_count) == (ReportStatus.NOT_STARTED, 1)
    assert one.deliver(interview_id) is ReportOutcome.WRITTEN
    assert report_of(world, interview_id).failure_code is None


def test_an_exhausted_quota_is_not_counted_as_an_attempt_and_is_left_to_the_dead_letter_queue(world: World) -> None:
    interview_id = world.settled().interview_id
    one = reporter(world, *[QuotaExhaustedError("no money") for _ in range(4)])
    for _ in range(4):
        with pytest.raises(QuotaExhaustedError):
            one.deliver(interview_id)
    report = report_of(world, interview_id)
    assert (report.attempt_count, report.failure_code) == (0, "quota_exhausted")
    assert not is_pending(world, interview_id), "the reconciler must not send it into the same wall again"
    assert one.deliver(interview_id) is ReportOutcome.WRITTEN


def test_a_request_the_api_refuses_is_final_and_goes_to_the_dead_letter_queue(world: World) -> None:
    interview_id = world.settled().interview_id
    one = reporter(world, RequestRefusedError("invalid schema"))
    with pytest.raises(RequestRefusedError):
        one.deliver(interview_id)
    assert report_of(world, interview_id).failure_code == "llm_request_refused"
    assert one.deliver(interview_id) is ReportOutcome.FAILED
    assert len(one.llm.calls) == 1


@pytest.mark.parametrize(
    "fault", [DependencyError("500", code="llm_unavailable"), MalformedAnswerError(TokenUsage(5, 0, 5))], ids=str
)
def test_after_three_attempts_the_report_is_failed_and_the_message_consumed(world: World, fault: AppError) -> None:
    interview_id = world.settled().interview_id
    one = reporter(world, *[fault] * 5)
    for _ in range(MAX_ATTEMPTS - 1):
        with pytest.raises(type(fault)):
            one.deliver(interview_id)
    assert one.deliver(interview_id) is ReportOutcome.FAILED
    report = report_of(world, interview_id)
    assert (report.status, report.failure_code) == (ReportStatus.FAILED, "attempts_exhausted")
    assert report.failure_detail == fault.code
    assert one.deliver(interview_id) is ReportOutcome.FAILED
    assert len(one.llm.calls) == MAX_ATTEMPTS
    assert not is_pending(world, interview_id)


def test_a_report_whose_writers_all_died_ends_as_failed(world: World) -> None:
    interview_id = world.settled().interview_id
    for _ in range(MAX_ATTEMPTS):
        world.reports.claim(interview_id, "acme", now=world.now, lease_expires_at=world.now + timedelta(seconds=1))
        world.pass_time(seconds=2)
    one = reporter(world)
    assert one.deliver(interview_id) is ReportOutcome.FAILED
    assert report_of(world, interview_id).failure_code == "attempts_exhausted"
    assert one.llm.calls == []


def test_an_operator_can_reset_a_failed_report_and_it_is_enqueued_again(world: World) -> None:
    interview_id = world.settled().interview_id
    one = reporter(world, RefusedAnswerError("no", TokenUsage()))
    one.deliver(interview_id)
    world.queue.sent.clear()
    report = reset_report(world.reports, world.interviews, world.queue, interview_id, clock=lambda: world.now)
    assert (report.status, report.attempt_count, report.failure_code) == (ReportStatus.NOT_STARTED, 0, None)
    assert [sent.queue for sent in world.queue.sent] == ["report-generate"]
    assert is_pending(world, interview_id)
    assert one.deliver(interview_id) is ReportOutcome.WRITTEN


def test_a_report_that_is_written_or_being_written_is_not_reset(world: World) -> None:
    written, being_written, running = world.settled(), world.settled(), world.create()
    reporter(world).deliver(written.interview_id)
    world.reports.claim(
        being_written.interview_id, "acme", now=world.now, lease_expires_at=world.now + timedelta(seconds=9)
    )
    before = world.snapshot()
    for interview in (written, being_written, running):
        with pytest.raises(InvalidStateError):
            reset_report(world.reports, world.interviews, world.queue, interview.interview_id, clock=lambda: world.now)
    with pytest.raises(NotFoundError):
        reset_report(world.reports, world.interviews, world.queue, "iv-unknown")
    assert world.snapshot() == before


def test_an_answer_is_paid_once_though_the_write_after_it_fails(world: World) -> None:
    interview_id = world.settled().interview_id

    class FailingReports(ReportRepository):
        failures = 1

        def complete(self, *args: Any, **options: Any) -> bool:
            if self.failures:
                self.failures -= 1
                raise DependencyError("MongoDB did not answer in time")
            return super().complete(*args, **options)

    one = Reporter(world, FakeLanguageModel(), FailingReports(world.database))
    with pytest.raises(DependencyError):
        one.deliver(interview_id)
    assert one.deliver(interview_id) is ReportOutcome.WRITTEN
    assert len(one.llm.calls) == 1
    report = report_of(world, interview_id)
    assert (report.usage.total_tokens, report.cost_micro_usd) == (1_200, COST)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("position", range(4))
def test_a_consumer_that_dies_at_any_write_leaves_a_report_that_the_next_one_finishes(
    world: World, position: int, after: bool
) -> None:
    interview_id = world.settled().interview_id
    llm = FakeLanguageModel()
    with process_that_dies(world.database, position, after=after) as (database, crash):
        dying = World(database)
        dying.now = world.now
        Reporter(dying, llm).deliver(interview_id)
    assert crash.writes == ["findAndModify", "update", "update", "update"][: len(crash.writes)]
    assert crash.dead
    world.pass_time(seconds=301)
    Reporter(world, llm).deliver(interview_id)
    assert report_of(world, interview_id).status is ReportStatus.COMPLETED
    assert not is_pending(world, interview_id)
    answer_was_stored = (position, after) >= (1, True)
    asked_before = (position, after) >= (1, False)
    assert len(llm.calls) == (1 if answer_was_stored or not asked_before else 2)


def test_an_interview_without_a_transcript_has_no_report(world: World) -> None:
    interview = world.completed()
    world.settle(interview)
    one = reporter(world)
    assert one.deliver(interview.interview_id) is ReportOutcome.FAILED
    assert report_of(world, interview.interview_id).failure_code == "transcript_missing"
    assert one.llm.calls == []


def test_only_completed_and_settled_interviews_get_a_report(world: World) -> None:
    one = reporter(world)
    for interview in (world.create(), world.completed(), world.failed()):
        with pytest.raises(InvalidStateError):
            one.deliver(interview.interview_id)
    with pytest.raises(NotFoundError):
        one.deliver("iv-unknown")
    assert one.llm.calls == []


def test_with_too_little_time_nothing_is_claimed(world: World) -> None:
    interview_id = world.settled().interview_id
    with pytest.raises(BusyError):
        reporter(world).deliver(interview_id, remaining=14)
    assert report_of(world, interview_id).attempt_count == 0
