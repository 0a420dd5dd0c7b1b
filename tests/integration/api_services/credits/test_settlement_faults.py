"""Settlement under concurrency, crashes and lost acknowledgements."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest

from api_services.credits.models import Grant
from api_services.credits.repository import CreditRepository
from api_services.errors import DependencyError, TransientError
from api_services.mongo import COMMIT_UNKNOWN
from tests.support.commits import break_commits
from tests.support.crashes import CrashError, process_that_dies
from tests.support.worlds import World

pytestmark = pytest.mark.integration


def test_one_interview_delivered_to_many_consumers_at_once_is_charged_once(world: World) -> None:
    world.grant(100)
    interview = world.completed()
    with ThreadPoolExecutor(8) as pool:
        outcomes = [each[0].settled for each in pool.map(world.settle, [interview] * 16)]
    assert outcomes.count(True) == 1
    assert sorted(world.amounts()) == [-10, 100]
    assert len(world.queue.messages("report-generate")) == 1
    world.assert_consistent()


def test_consumers_settling_one_organization_at_once_neither_lose_nor_double_a_credit(world: World) -> None:
    for days in (1, 2, 3):
        world.grant(55, expires_at=world.now + timedelta(days=days))
    interviews = [world.completed(credits_required=7) for _ in range(30)]
    groups = [interviews[start : start + 5] for start in range(0, 30, 5)]

    def settle(group: int) -> None:
        world.settle(*groups[group % len(groups)], timeout_seconds=30)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(settle, range(12)))
    balance = world.balance()
    assert (balance.available, balance.overdraft) == (0, 45)
    assert sum(world.amounts()) == -45
    world.assert_consistent()


def test_grants_and_shortages_at_the_same_moment_leave_no_debt_beside_credits(world: World) -> None:
    interviews = [world.completed(credits_required=10) for _ in range(12)]

    def act(number: int) -> None:
        if number % 2:
            while True:
                try:
                    world.grant(10, key=f"k-{number}")
                except TransientError:
                    continue
                return
        world.settle(interviews[number // 2], timeout_seconds=30)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(act, range(24)))
    balance = world.balance()
    assert (balance.available, balance.overdraft) == (0, 0)
    world.assert_consistent()


@pytest.mark.parametrize("known", [False, True], ids=["first grant of the organization", "later grant"])
def test_a_grant_between_the_reads_and_the_writes_of_a_shortage_is_seen_and_pays(
    world: World, monkeypatch: pytest.MonkeyPatch, known: bool
) -> None:
    if known:
        world.grant(1)
        world.settle(world.completed(credits_required=1))
    interview = world.completed(credits_required=10)
    original = CreditRepository.record_draws
    granted: list[Grant] = []

    def grant_first(*args: Any, **options: Any) -> None:
        if not granted:
            granted.append(world.grant(10))
        original(*args, **options)

    monkeypatch.setattr(CreditRepository, "record_draws", grant_first)
    world.settle(interview)
    balance = world.balance()
    assert (balance.available, balance.overdraft) == (0, 0), "no debt stands beside credits that could pay it"
    world.assert_consistent()


def test_a_lost_acknowledgement_of_the_commit_charges_once_and_redelivery_changes_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.grant(10)
    interview = world.completed(credits_required=4)
    with monkeypatch.context() as patched:
        break_commits(patched, times=1, applied=True)
        assert world.settle(interview)[0].settled
    assert sorted(world.amounts()) == [-4, 10]
    before = world.snapshot()
    assert not world.settle(interview)[0].settled
    assert world.snapshot() == before
    assert world.balance().available == 6
    world.assert_consistent()


def test_a_commit_that_stays_unknown_fails_the_message_and_its_redelivery_charges_nothing_more(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.grant(10)
    interview = world.completed(credits_required=4)
    with monkeypatch.context() as patched:
        break_commits(patched, times=10**9, applied=True)
        with pytest.raises(DependencyError) as unknown:
            world.settle(interview, timeout_seconds=1)
        assert unknown.value.code == COMMIT_UNKNOWN
    assert world.queue.messages("report-generate") == []
    assert not world.settle(interview)[0].settled
    assert sorted(world.amounts()) == [-4, 10]
    waiting = world.interviews.awaiting_report(settled_before=world.now + timedelta(hours=1), limit=10)
    assert [one.interview_id for one in waiting] == [interview.interview_id]
    world.assert_consistent()


def test_a_commit_that_never_reached_the_server_is_sent_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    interview = world.completed()
    with monkeypatch.context() as patched:
        break_commits(patched, times=1, applied=False)
        assert world.settle(interview)[0].settled
    world.assert_consistent()


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("position", range(5))
@pytest.mark.parametrize("group", [1, 3])
def test_a_consumer_that_dies_before_or_after_any_write_leaves_all_or_nothing_and_redelivery_completes_it(
    world: World, position: int, after: bool, group: int
) -> None:
    world.grant(8)
    world.grant(50)
    interviews = [world.completed(credits_required=10) for _ in range(group)]
    with process_that_dies(world.database, position, after=after) as (database, crash):
        World(database).settle(*interviews)
    writes = crash.writes
    assert crash.dead == (position < len(writes))
    assert len(writes) <= 5, "a new write needs a position of its own in this test"
    world.assert_consistent()
    committed = position >= len(writes) or (after and writes[position] == "commitTransaction")
    assert [world.stored(each).settled_at is not None for each in interviews] == [committed] * group
    assert [outcome.settled for outcome in world.settle(*interviews)] == [not committed] * group
    assert world.balance().available == 58 - 10 * group
    world.assert_consistent()


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("position", range(5))
def test_a_grant_that_dies_before_or_after_any_write_is_stored_whole_or_not_and_its_repetition_counts_once(
    world: World, position: int, after: bool
) -> None:
    world.settle(world.completed(credits_required=30))
    with process_that_dies(world.database, position, after=after) as (database, crash):
        World(database).grant(100, key="k")
    assert len(crash.writes) <= 5
    world.assert_consistent()
    world.grant(100, key="k")
    balance = world.balance()
    assert (balance.available, balance.overdraft) == (70, 0)
    world.assert_consistent()


def test_the_crash_of_these_tests_is_seen_by_no_handler_of_exceptions() -> None:
    assert not issubclass(CrashError, Exception)
