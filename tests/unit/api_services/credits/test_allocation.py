"""Which lots pay for which interviews."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api_services.credits.allocation import Charge, Draw, OpenLot, allocate
from api_services.credits.models import NEVER

DAY = datetime(2026, 5, 1, tzinfo=UTC)


def lot(name: str, remaining: int, *, expires: datetime = NEVER, granted: datetime = DAY) -> OpenLot:
    return OpenLot(name, remaining, expires, granted)


def charge(credits_due: int, *, interview: str = "iv-1", ended: datetime = DAY) -> Charge:
    return Charge(interview, credits_due, ended)


def test_the_lot_that_expires_soonest_pays_first_and_one_without_expiry_last() -> None:
    lots = [
        lot("never", 10),
        lot("june", 3, expires=DAY + timedelta(days=31)),
        lot("may", 2, expires=DAY + timedelta(days=1)),
    ]
    assert allocate([charge(7)], lots) == [Draw("iv-1", "may", 2), Draw("iv-1", "june", 3), Draw("iv-1", "never", 2)]


@pytest.mark.parametrize(("offset_ms", "pays"), [(-1, False), (0, False), (1, True)])
def test_a_lot_that_expired_when_the_interview_ended_does_not_pay(offset_ms: int, pays: bool) -> None:
    lots = [lot("edge", 5, expires=DAY + timedelta(milliseconds=offset_ms))]
    assert allocate([charge(5)], lots) == [Draw("iv-1", "edge" if pays else None, 5)]


def test_of_lots_that_expire_together_the_one_granted_first_pays_first() -> None:
    lots = [lot("later", 5, granted=DAY + timedelta(hours=1)), lot("earlier", 5)]
    assert allocate([charge(5)], lots) == [Draw("iv-1", "earlier", 5)]


def test_a_shortage_is_drawn_on_no_lot() -> None:
    assert allocate([charge(7)], [lot("a", 4)]) == [Draw("iv-1", "a", 4), Draw("iv-1", None, 3)]


def test_an_interview_that_costs_nothing_draws_nothing() -> None:
    assert allocate([charge(0)], [lot("a", 4)]) == []


def test_an_earlier_interview_may_use_a_lot_that_a_later_one_may_not() -> None:
    lots = [lot("brief", 5, expires=DAY + timedelta(hours=1)), lot("never", 5)]
    late = charge(5, interview="late", ended=DAY + timedelta(hours=2))
    early = charge(5, interview="early")
    assert allocate([late, early], lots) == [Draw("early", "brief", 5), Draw("late", "never", 5)]


moments = st.integers(0, 5).map(lambda hours: DAY + timedelta(hours=hours))
lots_of = st.lists(st.tuples(st.integers(1, 9), moments | st.just(NEVER), moments), max_size=6).map(
    lambda rows: [OpenLot(f"lot-{i}", *row) for i, row in enumerate(rows)]
)
charges_of = st.lists(st.tuples(st.integers(0, 12), moments), max_size=5).map(
    lambda rows: [Charge(f"iv-{i}", *row) for i, row in enumerate(rows)]
)


@given(charges=charges_of, lots=lots_of, data=st.data())
def test_every_charge_is_paid_in_full_from_live_lots_in_any_order_of_the_arguments(
    charges: list[Charge], lots: list[OpenLot], data: st.DataObject
) -> None:
    draws = allocate(charges, lots)
    for one in charges:
        assert sum(draw.credits for draw in draws if draw.interview_id == one.interview_id) == one.credits
    by_id = {one.lot_id: one for one in lots}
    ends = {one.interview_id: one.ended_at for one in charges}
    for draw in draws:
        assert draw.credits > 0
        if draw.lot_id is not None:
            assert by_id[draw.lot_id].expiry_order > ends[draw.interview_id]
    for one in lots:
        assert sum(draw.credits for draw in draws if draw.lot_id == one.lot_id) <= one.remaining
    assert len({(draw.interview_id, draw.lot_id) for draw in draws}) == len(draws)
    assert allocate(data.draw(st.permutations(charges)), data.draw(st.permutations(lots))) == draws
