"""Which lots pay for which interviews: pure, so that it can be read and tested as a table."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Charge:
    """What an interview costs, and when it ended: lots expired by then do not pay."""

    interview_id: str
    credits: int
    ended_at: datetime


@dataclass(slots=True)
class OpenLot:
    """A lot with something left. `expiry_order` is when it expires, far in the future for never."""

    lot_id: str
    remaining: int
    expiry_order: datetime
    granted_at: datetime


@dataclass(frozen=True, slots=True)
class Draw:
    """Credits of an interview paid by one lot; no lot: owed by the organization."""

    interview_id: str
    lot_id: str | None
    credits: int


def allocate(charges: Iterable[Charge], lots: Sequence[OpenLot]) -> list[Draw]:
    """Pay each charge, the earliest ended first, from the lots that expire soonest; a shortage is drawn on no lot.

    A lot that expires at the very moment an interview ended is expired for it. The order of the arguments does not
    matter, and no lot is drawn twice for one interview.
    """
    ordered = sorted(lots, key=lambda lot: (lot.expiry_order, lot.granted_at, lot.lot_id))
    left = {lot.lot_id: lot.remaining for lot in ordered}
    draws: list[Draw] = []
    for charge in sorted(charges, key=lambda charge: (charge.ended_at, charge.interview_id)):
        due = charge.credits
        for lot in ordered:
            if due == 0:
                break
            taken = min(due, left[lot.lot_id]) if lot.expiry_order > charge.ended_at else 0
            if taken:
                left[lot.lot_id] -= taken
                due -= taken
                draws.append(Draw(charge.interview_id, lot.lot_id, taken))
        if due:
            draws.append(Draw(charge.interview_id, None, due))
    return draws
