"""Grants, balances and pages."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest

from api_services.credits import service
from api_services.credits.models import Grant
from api_services.errors import ConflictError, InvalidInputError, TransientError
from api_services.mongo import Session
from tests.support.worlds import World

pytestmark = pytest.mark.integration


def test_a_grant_is_a_lot_and_a_ledger_entry(world: World) -> None:
    granted = world.grant(100, expires_at=world.now + timedelta(days=30))
    assert granted.created
    assert (granted.lot.amount, granted.lot.remaining) == (100, 100)
    assert world.amounts() == [100]
    assert world.balance().available == 100
    world.assert_consistent()


def test_the_same_key_and_payload_returns_the_stored_lot_even_after_it_was_drawn_or_has_expired(world: World) -> None:
    expires_at = world.now + timedelta(days=1)
    first = world.grant(100, key="grant:ord-5", expires_at=expires_at)
    world.settle(world.completed(credits_required=30))
    world.pass_time(days=2)
    again = world.grant(100, key="grant:ord-5", expires_at=expires_at)
    assert not again.created
    assert (again.lot.lot_id, again.lot.amount, again.lot.remaining) == (first.lot.lot_id, 100, 70)
    assert world.amounts() == [100, -30]


@pytest.mark.parametrize("change", [{"amount": 150}, {"expires_in_days": 2}, {"expires_in_days": None}])
def test_the_same_key_with_another_payload_is_a_conflict_and_grants_nothing(
    world: World, change: dict[str, Any]
) -> None:
    world.grant(100, key="grant:ord-5", expires_at=world.now + timedelta(days=1))
    days = change.get("expires_in_days", 1)
    expires_at = None if days is None else world.now + timedelta(days=days)
    with pytest.raises(ConflictError):
        world.grant(change.get("amount", 100), key="grant:ord-5", expires_at=expires_at)
    assert world.balance().available == 100
    world.assert_consistent()


def test_keys_belong_to_an_organization_and_equal_top_ups_under_two_keys_both_count(world: World) -> None:
    world.grant(100, key="k-1")
    world.grant(100, key="k-2")
    world.grant(100, key="k-1", organization="other")
    assert world.balance().available == 200
    assert world.balance("other").available == 100


def test_the_same_grant_sent_by_many_at_once_counts_once(world: World) -> None:
    def grant(_: int) -> Grant | None:
        try:
            return world.grant(100, key="k")
        except TransientError:
            return None

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(grant, range(16)))
    assert sum(1 for result in results if result and result.created) == 1
    assert world.balance().available == 100
    world.assert_consistent()


def test_a_grant_repays_what_is_owed_first(world: World) -> None:
    world.settle(world.completed(credits_required=30))
    assert world.balance().overdraft == 30
    world.pass_time(seconds=1)
    first = world.grant(20)
    assert (first.lot.remaining, first.lot.overdraft_repaid) == (0, 20)
    assert world.balance().overdraft == 10
    world.pass_time(seconds=1)
    second = world.grant(25)
    assert (second.lot.remaining, second.lot.overdraft_repaid) == (15, 10)
    balance = world.balance()
    assert (balance.available, balance.overdraft) == (15, 0)
    assert world.amounts() == [-30, 20, 25]
    world.assert_consistent()


def test_a_crash_between_the_writes_of_a_grant_stores_nothing_and_the_next_try_grants(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = type(world.credits).insert_grant

    def crash(self: Any, lot: Any, session: Session) -> None:
        original(self, lot, session)
        raise RuntimeError("the process died")

    with monkeypatch.context() as patched:
        patched.setattr(type(world.credits), "insert_grant", crash)
        with pytest.raises(RuntimeError):
            world.grant(100, key="k")
    assert {name: rows for name, rows in world.snapshot().items() if rows} == {}
    assert world.grant(100, key="k").created
    world.assert_consistent()


@pytest.mark.parametrize("amount", [0, -1, 4.5, 4.0, True, "4", 1_000_000_001, None])
def test_an_amount_that_is_no_whole_number_within_bounds_is_refused(world: World, amount: Any) -> None:
    with pytest.raises(InvalidInputError, match="amount"):
        world.grant(amount)
    assert world.snapshot() == {}


@pytest.mark.parametrize("key", ["", "with space", "x" * 129, "ä", "line\nbreak"])
def test_a_key_is_printable_and_bounded(world: World, key: str) -> None:
    with pytest.raises(InvalidInputError, match="idempotencyKey"):
        service.grant_credits(world.credits, organization_id="acme", amount=1, idempotency_key=key, now=world.now)


def test_an_expiry_must_lie_ahead_and_know_its_zone(world: World) -> None:
    for expires_at in (world.now, world.now - timedelta(days=1), world.now.replace(tzinfo=None)):
        with pytest.raises(InvalidInputError, match="expiresAt"):
            world.grant(10, expires_at=expires_at)


def test_what_lapsed_unspent_is_no_longer_available(world: World) -> None:
    world.grant(10, expires_at=world.now + timedelta(days=1))
    world.grant(5)
    world.pass_time(days=1)
    balance = world.balance()
    assert (balance.available, balance.expired, balance.overdraft) == (5, 10, 0)


def test_an_organization_without_grants_has_nothing(world: World) -> None:
    balance = world.balance("nobody")
    assert (balance.available, balance.expired, balance.overdraft) == (0, 0, 0)


def test_pages_hold_everything_once_newest_first(world: World) -> None:
    for number in range(7):
        world.grant(number + 1)
        if number % 3 == 0:
            world.pass_time(seconds=1)
    amounts: list[int] = []
    cursor: str | None = None
    while True:
        page = service.ledger(world.credits, "acme", limit=3, cursor=cursor)
        amounts += [entry.amount for entry in page.items]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert sorted(amounts) == [1, 2, 3, 4, 5, 6, 7]
    assert amounts[-1] == 1
    lots = service.lots(world.credits, "acme", limit=7)
    assert lots.next_cursor is None
    assert [lot.amount for lot in lots.items] == amounts
