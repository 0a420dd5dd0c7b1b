"""Credit lots, ledger entries and what settlement did, as stored and as the API shows them."""

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final

from api_services.entities import Credits, Entity, PositiveCredits

NEVER: Final = datetime(9999, 12, 31, tzinfo=UTC)
"""A lot without expiry is drawn last."""


class EntryKind(StrEnum):
    GRANT = "GRANT"
    CONSUMPTION = "CONSUMPTION"
    OVERDRAFT = "OVERDRAFT"


class CreditLot(Entity):
    """Credits granted together. `remaining` began as `amount` less what repaid an overdraft."""

    lot_id: str
    organization_id: str
    amount: PositiveCredits
    remaining: Credits
    overdraft_repaid: Credits = 0
    granted_at: datetime
    expires_at: datetime | None = None


class LedgerEntry(Entity):
    """One line of the append-only ledger; `amount` is positive for grants, negative for what was consumed."""

    entry_id: str
    organization_id: str
    kind: EntryKind
    amount: int
    created_at: datetime
    lot_id: str | None = None
    interview_id: str | None = None


class Balance(Entity):
    """What an organization may spend, what lapsed unspent, and what it owes."""

    organization_id: str
    available: int
    expired: int
    overdraft: int


@dataclass(frozen=True, slots=True)
class Grant:
    """The lot of a grant; `created` is false when the same grant had been stored before."""

    lot: CreditLot
    created: bool


@dataclass(frozen=True, slots=True)
class Settlement:
    """What one message led to. Not `settled`: it had been settled before, and nothing was done."""

    interview_id: str
    settled: bool
    consumed: int = 0
    report_due: bool = False
