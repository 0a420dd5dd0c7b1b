"""Who is interviewed in the demonstration, at what price, and what must have become of it in the end."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class PlannedLot:
    """Credits granted together; `expires_in_days` None for never."""

    key: str
    amount: int
    expires_in_days: int | None
    remaining: int
    """What must be left in the end."""


@dataclass(frozen=True, slots=True)
class PlannedOrganization:
    """An organization, its lots and what it must owe in the end."""

    key: str
    name: str
    lots: tuple[PlannedLot, ...]
    overdraft: int


@dataclass(frozen=True, slots=True)
class PlannedInterview:
    """One interview: `draws` are the credits it must draw from each lot, `overdraft` what it lacks.

    `after` names the interview whose settlement this one waits for, so that the end is the same every time.
    """

    key: str
    organization: str
    transcript: str
    credits_required: int
    draws: Mapping[str, int]
    overdraft: int = 0
    failure_code: str | None = None
    after: str | None = None

    @property
    def consumed(self) -> int:
        return 0 if self.failure_code else self.credits_required


ORGANIZATIONS: Final = (
    PlannedOrganization(
        "freight",
        "Meridian Freight",
        (
            PlannedLot("spring", 40, 10, remaining=0),
            PlannedLot("year", 50, 90, remaining=15),
            PlannedLot("gift", 100, None, remaining=100),
        ),
        overdraft=0,
    ),
    PlannedOrganization(
        "clinics",
        "Alder Clinics",
        (PlannedLot("trial", 20, 5, remaining=0), PlannedLot("starter", 15, None, remaining=0)),
        overdraft=20,
    ),
)

INTERVIEWS: Final = (
    PlannedInterview("backend-engineer", "freight", "backend-engineer", 25, {"spring": 25}),
    PlannedInterview("support", "freight", "support-lead", 30, {"spring": 15, "year": 15}, after="backend-engineer"),
    PlannedInterview("warehouse", "freight", "warehouse-manager", 20, {"year": 20}, after="support"),
    PlannedInterview("charge-nurse", "clinics", "charge-nurse", 30, {"trial": 20, "starter": 10}),
    PlannedInterview("designer", "freight", "product-designer", 25, {}, failure_code="connection_lost"),
    PlannedInterview("data-analyst", "clinics", "data-analyst", 25, {"starter": 5}, overdraft=20, after="charge-nurse"),
)

DUPLICATED: Final = "support"
"""The interview whose completion is delivered twice more."""

NOT_JSON: Final = "{ this is not JSON"
