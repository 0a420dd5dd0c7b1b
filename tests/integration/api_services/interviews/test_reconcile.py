"""Gaps that a crash left are closed, and nothing else is sent."""

from datetime import timedelta

import pytest

from api_services.errors import DependencyError
from api_services.indexes import ensure_all_indexes
from api_services.interviews.reconcile import GRACE, ReconcileCollaborators, Reconciled, find_gaps, reconcile_interviews
from api_services.interviews.service import complete_interview
from tests.support.worlds import World

pytestmark = pytest.mark.integration


def reconcile(world: World, *, remaining: float = 100) -> Reconciled:
    collaborators = ReconcileCollaborators(world.interviews, world.reports, world.queue)
    world.queue.sent.clear()
    return reconcile_interviews(collaborators, now=world.now, remaining_seconds=lambda: remaining)


def gaps(world: World) -> Reconciled:
    return find_gaps(ReconcileCollaborators(world.interviews, world.reports, world.queue), now=world.now)


def test_an_interview_whose_enqueue_failed_is_enqueued_after_fifteen_minutes_and_not_before(world: World) -> None:
    world.queue.fail_with = DependencyError("SQS does not answer")
    interview = world.create()
    with pytest.raises(DependencyError):
        complete_interview(world.interviews, world.queue, interview.interview_id, now=world.now)
    world.queue.fail_with = None
    world.pass_time(seconds=GRACE.total_seconds())
    assert reconcile(world) == Reconciled(0, 0, 0, complete=True)
    world.pass_time(seconds=1)
    assert gaps(world) == Reconciled(1, 0, 0, complete=True)
    assert reconcile(world) == Reconciled(1, 0, 0, complete=True)
    (message,) = world.queue.messages("interview-completed")
    assert message.model_dump()["interview_id"] == interview.interview_id
    assert reconcile(world) == Reconciled(0, 0, 0, complete=True), "not again until another grace has passed"
    world.pass_time(minutes=16)
    assert reconcile(world).unsettled == 1


def test_failed_interviews_are_reconciled_like_completed_ones_and_running_ones_are_left_alone(world: World) -> None:
    world.create()
    failed = world.failed(code="candidate_left")
    world.pass_time(minutes=16)
    assert reconcile(world).unsettled == 1
    assert world.queue.messages("interview-completed")[0].model_dump()["failure_code"] == "candidate_left"
    world.settle(world.stored(failed))
    world.pass_time(minutes=16)
    assert reconcile(world) == Reconciled(0, 0, 0, complete=True)


def test_a_settled_completion_without_a_report_is_enqueued(world: World) -> None:
    interview = world.completed()
    world.queue.fail_with = DependencyError("SQS does not answer")
    world.settle(interview)
    world.queue.fail_with = None
    world.pass_time(minutes=16)
    assert reconcile(world) == Reconciled(0, 1, 0, complete=True)
    assert reconcile(world) == Reconciled(0, 0, 0, complete=True)
    assert gaps(world) == Reconciled(0, 0, 0, complete=True)


def test_a_report_whose_lease_expired_is_enqueued_once_though_its_interview_is_found_too(world: World) -> None:
    interview_id = world.settled().interview_id
    world.reports.claim(interview_id, "acme", now=world.now, lease_expires_at=world.now + timedelta(minutes=5))
    world.pass_time(minutes=4)
    assert reconcile(world) == Reconciled(0, 0, 0, complete=True)
    world.pass_time(minutes=2)
    assert reconcile(world) == Reconciled(0, 0, 1, complete=True)
    world.pass_time(minutes=16)
    assert reconcile(world) == Reconciled(0, 1, 0, complete=True)
    assert len(world.queue.messages("report-generate")) == 1


def test_a_failing_queue_fails_the_run_and_the_next_one_sends(world: World) -> None:
    world.completed()
    world.pass_time(minutes=16)
    world.queue.fail_with = DependencyError("SQS does not answer")
    with pytest.raises(DependencyError):
        reconcile(world)
    world.queue.fail_with = None
    assert reconcile(world).unsettled == 1


def test_more_than_a_page_is_sent_in_one_run_and_time_that_runs_out_is_said(world: World) -> None:
    for _ in range(105):
        world.completed()
    world.pass_time(minutes=16)
    assert not gaps(world).complete
    assert reconcile(world, remaining=5) == Reconciled(0, 0, 0, complete=False)
    assert reconcile(world) == Reconciled(105, 0, 0, complete=True)
    assert len(world.queue.messages("interview-completed")) == 105


def test_its_queries_are_answered_by_indexes(world: World) -> None:
    ensure_all_indexes(world.database)
    since = world.now
    for collection, query in (
        ("interviews", {"settledAt": None, "endedAt": {"$lt": since}, "enqueuedAt": {"$not": {"$gte": since}}}),
        ("interviews", {"reportPending": True, "settledAt": {"$lt": since}}),
        ("reports", {"status": "PROCESSING", "leaseExpiresAt": {"$lte": since}}),
    ):
        plan = str(world.database[collection].find(query).explain()["queryPlanner"]["winningPlan"])
        assert "IXSCAN" in plan
        assert "COLLSCAN" not in plan
