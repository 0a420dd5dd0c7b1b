"""Interviews as the bot sees them."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from api_services.errors import (
    AppError,
    ConflictError,
    DependencyError,
    InvalidInputError,
    InvalidStateError,
    NotFoundError,
)
from api_services.interviews.models import InterviewStatus, Proctoring, ProctoringEvent
from api_services.interviews.service import (
    complete_interview,
    create_interview,
    fail_interview,
    get_interview,
    record_proctoring,
    record_transcript,
)
from tests.support.worlds import World, conversation

pytestmark = pytest.mark.integration


def complete(world: World, interview_id: str) -> Any:
    return complete_interview(world.interviews, world.queue, interview_id, now=world.now)


def fail(world: World, interview_id: str, code: str = "no_show") -> Any:
    return fail_interview(world.interviews, world.queue, interview_id, failure_code=code, now=world.now)


def test_completing_changes_the_status_at_once_and_leaves_settling_to_the_queue(world: World) -> None:
    interview = world.create()
    completed = complete(world, interview.interview_id)
    assert completed.status is InterviewStatus.COMPLETED
    assert completed.ended_at == world.now
    assert world.stored(interview) == completed
    assert completed.settled_at is None
    (message,) = world.queue.messages("interview-completed")
    assert message.model_dump()["interview_id"] == interview.interview_id


def test_completing_again_is_no_error_keeps_the_first_end_and_sends_again_while_unsettled(world: World) -> None:
    interview_id = world.create().interview_id
    first = complete(world, interview_id)
    world.pass_time(minutes=1)
    assert complete(world, interview_id) == first
    assert len(world.queue.messages("interview-completed")) == 2
    world.settle(first)
    world.queue.sent.clear()
    complete(world, interview_id)
    assert world.queue.sent == []


def test_an_enqueue_that_failed_is_repaired_by_the_next_call(world: World) -> None:
    interview_id = world.create().interview_id
    world.queue.fail_with = DependencyError("SQS does not answer")
    with pytest.raises(DependencyError):
        complete(world, interview_id)
    assert get_interview(world.interviews, interview_id).status is InterviewStatus.COMPLETED
    world.queue.fail_with = None
    complete(world, interview_id)
    assert len(world.queue.messages("interview-completed")) == 1


def test_a_terminal_status_is_never_overwritten(world: World) -> None:
    completed, failed = world.completed(), world.failed(code="first_code")
    before = world.snapshot()
    with pytest.raises(InvalidStateError):
        fail(world, completed.interview_id)
    with pytest.raises(InvalidStateError):
        complete(world, failed.interview_id)
    assert fail(world, failed.interview_id, "second_code").failure_code == "first_code"
    assert world.snapshot() == before


def test_of_completing_and_failing_at_once_one_wins(world: World) -> None:
    for _ in range(5):
        interview = world.create()

        def end(number: int, interview_id: str = interview.interview_id) -> bool:
            try:
                (complete if number % 2 else fail)(world, interview_id)
            except InvalidStateError:
                return False
            return True

        with ThreadPoolExecutor(4) as pool:
            results = list(pool.map(end, range(4)))
        assert results in ([True, False, True, False], [False, True, False, True])


def test_unknown_interviews_are_not_found(world: World) -> None:
    for call in (
        lambda: complete(world, "iv-none"),
        lambda: fail(world, "iv-none"),
        lambda: get_interview(world.interviews, "iv-none"),
        lambda: record_transcript(world.interviews, "iv-none", conversation()),
        lambda: record_proctoring(world.interviews, "iv-none", Proctoring(events=())),
    ):
        with pytest.raises(NotFoundError):
            call()
    assert world.queue.sent == []


def test_creating_again_under_the_same_id_returns_the_stored_one_unless_the_terms_differ(world: World) -> None:
    def create(credits_required: int = 5, organization: str = "acme") -> Any:
        return create_interview(
            world.interviews,
            organization_id=organization,
            credits_required=credits_required,
            now=world.now,
            interview_id="iv-x",
        )

    first = create()
    world.pass_time(minutes=1)
    assert create() == first
    with pytest.raises(ConflictError):
        create(credits_required=6)
    with pytest.raises(ConflictError):
        create(organization="other")


@pytest.mark.parametrize(
    "terms",
    [
        {"organization_id": ""},
        {"organization_id": "a b"},
        {"organization_id": "x" * 65},
        {"interview_id": "$where"},
        {"credits_required": 1.5},
        {"credits_required": True},
        {"credits_required": -1},
        {"credits_required": 10**10},
    ],
    ids=str,
)
def test_terms_out_of_bounds_are_refused(world: World, terms: dict[str, Any]) -> None:
    valid: dict[str, Any] = {"organization_id": "acme", "credits_required": 1, "now": world.now}
    with pytest.raises(InvalidInputError):
        create_interview(world.interviews, **(valid | terms))
    assert world.snapshot() == {}


@pytest.mark.parametrize("code", ["", "No Show", "x" * 65, "$code"])
def test_a_failure_code_is_snake_case(world: World, code: str) -> None:
    interview = world.create()
    with pytest.raises(InvalidInputError):
        fail(world, interview.interview_id, code)
    assert world.stored(interview).status is InterviewStatus.CREATED


def test_a_transcript_replaces_an_earlier_one_until_the_interview_has_ended(world: World) -> None:
    interview_id = world.create().interview_id
    record_transcript(world.interviews, interview_id, conversation("first words"))
    record_transcript(world.interviews, interview_id, conversation("last words"))
    assert world.interviews.transcript(interview_id) == conversation("last words")
    complete(world, interview_id)
    record_transcript(world.interviews, interview_id, conversation("last words"))
    with pytest.raises(InvalidStateError) as refused:
        record_transcript(world.interviews, interview_id, conversation("other words"))
    assert refused.value.code == "interview_has_ended"
    assert world.interviews.transcript(interview_id) == conversation("last words")


def test_proctoring_data_is_kept_until_the_interview_has_ended(world: World) -> None:
    interview_id = world.create().interview_id
    noticed = Proctoring(events=(ProctoringEvent(kind="tab_lost_focus", at_seconds=12.5),))
    record_proctoring(world.interviews, interview_id, noticed)
    fail(world, interview_id)
    record_proctoring(world.interviews, interview_id, noticed)
    with pytest.raises(AppError):
        record_proctoring(world.interviews, interview_id, Proctoring(events=()))
    assert world.interviews.proctoring(interview_id) == noticed
