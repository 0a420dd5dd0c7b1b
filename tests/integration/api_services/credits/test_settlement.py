"""Settlement, one interview and many."""

from datetime import timedelta

import pytest

from api_services.credits import service
from api_services.credits.settlement import settle_completed_interview, settle_failed_interview
from api_services.errors import DependencyError, InvalidInputError, InvalidStateError, NotFoundError
from api_services.interviews.messages import InterviewCompleted, InterviewFailed
from tests.support.worlds import START, World

pytestmark = pytest.mark.integration


def completed_message(interview_id: str, organization: str = "acme") -> InterviewCompleted:
    return InterviewCompleted(interview_id=interview_id, organization_id=organization, ended_at=START)


def failed_message(interview_id: str, code: str = "no_show") -> InterviewFailed:
    return InterviewFailed(interview_id=interview_id, organization_id="acme", ended_at=START, failure_code=code)


def test_a_completed_interview_is_charged_and_its_report_enqueued_after_the_commit(world: World) -> None:
    world.grant(100)
    interview = world.completed(credits_required=30)
    world.queue.sent.clear()
    world.pass_time(seconds=5)
    outcome = settle_completed_interview(
        world.settlement, completed_message(interview.interview_id), now=world.now, timeout_seconds=10
    )
    assert (outcome.settled, outcome.consumed) == (True, 30)
    stored = world.stored(interview)
    assert stored.settled_at == world.now
    assert stored.credits.consumed == 30
    assert stored.retention_expires_at == START + timedelta(days=365)
    assert world.amounts() == [100, -30]
    assert [sent.queue for sent in world.queue.sent] == ["report-generate"]
    world.assert_consistent()


def test_a_duplicate_delivery_charges_nothing_and_enqueues_no_second_report(world: World) -> None:
    world.grant(100)
    interview = world.completed()
    world.settle(interview)
    before, sent = world.snapshot(), list(world.queue.sent)
    world.pass_time(hours=1)
    assert [outcome.settled for outcome in world.settle(interview)] == [False]
    assert [outcome.settled for outcome in world.settle(interview, interview, interview)] == [False] * 3
    assert world.snapshot() == before
    assert world.queue.sent == sent


def test_a_failed_interview_costs_nothing_and_is_still_settled(world: World) -> None:
    world.grant(100)
    interview = world.failed()
    world.queue.sent.clear()
    outcome = settle_failed_interview(
        world.settlement, failed_message(interview.interview_id), now=world.now, timeout_seconds=10
    )
    assert (outcome.settled, outcome.consumed, outcome.report_due) == (True, 0, False)
    stored = world.stored(interview)
    assert stored.credits.consumed == 0
    assert stored.settled_at is not None
    assert stored.retention_expires_at is not None
    assert world.amounts() == [100]
    assert world.queue.sent == []
    world.assert_consistent()


def test_lots_are_drawn_soonest_expiry_first_with_one_entry_for_each(world: World) -> None:
    never = world.grant(50).lot
    may = world.grant(5, expires_at=world.now + timedelta(days=2)).lot
    april = world.grant(5, expires_at=world.now + timedelta(days=1)).lot
    world.settle(world.completed(credits_required=12))
    entries = [entry for entry in service.ledger(world.credits, "acme").items if entry.interview_id]
    drawn = {entry.lot_id: entry.amount for entry in entries}
    assert drawn == {april.lot_id: -5, may.lot_id: -5, never.lot_id: -2}
    world.assert_consistent()


def test_what_counts_is_when_the_interview_ended_not_when_it_is_settled(world: World) -> None:
    lot = world.grant(10, expires_at=world.now + timedelta(hours=1)).lot
    in_time = world.completed()
    world.pass_time(hours=1)
    too_late = world.completed()
    world.pass_time(days=3)
    world.settle(too_late)
    assert world.balance().overdraft == 10
    world.pass_time(seconds=1)
    world.settle(in_time)
    assert [entry.lot_id for entry in service.ledger(world.credits, "acme").items if entry.interview_id] == [
        lot.lot_id,
        None,
    ]
    world.assert_consistent()


def test_a_shortage_becomes_an_overdraft_and_blocks_nothing(world: World) -> None:
    world.grant(4)
    outcomes = [world.settle(world.completed(credits_required=10))[0] for _ in range(3)]
    assert [outcome.consumed for outcome in outcomes] == [10, 10, 10]
    balance = world.balance()
    assert (balance.available, balance.overdraft) == (0, 26)
    assert sorted(world.amounts()) == [-10, -10, -6, -4, 4]
    world.assert_consistent()


def test_an_interview_without_cost_is_settled_without_entries(world: World) -> None:
    world.settle(world.completed(credits_required=0))
    assert world.amounts() == []
    world.assert_consistent()


def test_many_small_lots_pay_one_large_interview(world: World) -> None:
    for _ in range(130):
        world.grant(1)
    world.settle(world.completed(credits_required=125))
    assert world.balance().available == 5
    world.assert_consistent()


def test_a_group_is_settled_in_one_transaction_with_the_outcome_of_one_by_one(world: World) -> None:
    world.grant(25)
    interviews = [world.completed(), world.failed(), world.completed(), world.completed()]
    outcomes = world.settle(*interviews, interviews[0])
    assert [(outcome.settled, outcome.consumed) for outcome in outcomes] == [
        (True, 10),
        (True, 0),
        (True, 10),
        (True, 10),
        (False, 0),
    ]
    assert world.balance().overdraft == 5
    assert len(world.queue.messages("report-generate")) == 3
    assert len({world.stored(interview).settled_at for interview in interviews}) == 1
    world.assert_consistent()


def test_reports_of_a_group_carry_the_request_id_of_their_own_message(world: World) -> None:
    from api_services.credits.settlement import settle_many
    from api_services.interviews.service import settlement_message

    messages = [settlement_message(each) for each in (world.completed(), world.failed(), world.completed())]
    world.queue.sent.clear()
    settle_many(world.settlement, messages, now=world.now, timeout_seconds=10, request_ids=["r-1", "r-2", None])
    assert [sent.request_id for sent in world.queue.sent] == ["r-1", None]


def test_one_unknown_interview_fails_its_whole_group_and_settles_none_of_it(world: World) -> None:
    good = world.completed()
    before = world.snapshot()
    with pytest.raises(NotFoundError):
        world.settle(good, completed_message("iv-unknown"))
    assert world.snapshot() == before


def test_a_group_of_two_organizations_is_refused(world: World) -> None:
    with pytest.raises(InvalidInputError):
        world.settle(world.completed(), world.completed(organization="other"))


def test_an_unknown_interview_is_a_permanent_fault(world: World) -> None:
    with pytest.raises(NotFoundError):
        world.settle(completed_message("iv-unknown"))
    with pytest.raises(NotFoundError):
        world.settle(failed_message("iv-unknown"))


def test_a_message_that_contradicts_the_interviews_state_changes_nothing(world: World) -> None:
    completed, failed, running = world.completed(), world.failed(), world.create()
    before = world.snapshot()
    for message in (
        failed_message(completed.interview_id),
        completed_message(failed.interview_id),
        completed_message(running.interview_id),
        failed_message(running.interview_id),
    ):
        with pytest.raises(InvalidStateError) as refused:
            world.settle(message)
        assert refused.value.code == "message_contradicts_state"
    assert world.snapshot() == before


def test_a_stale_failure_after_settlement_is_a_duplicate_and_leaves_the_interview_completed(world: World) -> None:
    interview = world.completed()
    world.settle(interview)
    before = world.snapshot()
    assert not world.settle(failed_message(interview.interview_id))[0].settled
    assert world.snapshot() == before


def test_a_message_naming_another_organization_charges_nobody(world: World) -> None:
    interview = world.completed(organization="acme")
    before = world.snapshot()
    with pytest.raises(InvalidStateError) as refused:
        world.settle(completed_message(interview.interview_id, "other"))
    assert refused.value.code == "organization_mismatch"
    assert world.snapshot() == before


def test_a_report_that_could_not_be_enqueued_is_logged_and_counted_and_the_settlement_stands(
    world: World, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    interview = world.completed()
    world.queue.fail_with = DependencyError("SQS does not answer")
    assert world.settle(interview)[0].settled
    assert "settlement.report_enqueue_failed" in caplog.text
    assert '"ReportEnqueueFailed": 1' in capsys.readouterr().out
    waiting = world.interviews.awaiting_report(settled_before=world.now + timedelta(minutes=15), limit=10)
    assert [one.interview_id for one in waiting] == [interview.interview_id]
    world.assert_consistent()
