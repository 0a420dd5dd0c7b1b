"""What happened in the interview half of the demonstration."""

from dataclasses import asdict, dataclass, field
from typing import Any, Final

from cli.demo.evidence import Evidence, QueueDepth

_ENDED: Final = frozenset({"COMPLETED", "FAILED"})


@dataclass(slots=True)
class InterviewShown:
    """One interview as the API shows it."""

    key: str
    interview_id: str
    organization: str
    words: int
    required: int
    status: str = "-"
    failure_code: str | None = None
    settled: bool = False
    consumed: int | None = None
    report_status: str = "-"
    report: dict[str, Any] | None = None

    @property
    def finished(self) -> bool:
        """Settled, and reported where a report is due."""
        return self.settled and (self.status == "FAILED" or self.report_status in _ENDED)


@dataclass(slots=True)
class OrganizationShown:
    """One organization as the API shows it."""

    key: str
    name: str
    organization_id: str
    balance: dict[str, Any] = field(default_factory=dict[str, Any])
    lots: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    ledger: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])


@dataclass(slots=True)
class InterviewsPlayed:
    """What happened; `checks` are the promises, each with the reason why it does not hold, or None."""

    run: str
    interviews: dict[str, InterviewShown] = field(default_factory=dict[str, InterviewShown])
    organizations: dict[str, OrganizationShown] = field(default_factory=dict[str, OrganizationShown])
    queues: list[QueueDepth] = field(default_factory=list[QueueDepth])
    evidence: Evidence | None = None
    steps: dict[str, float] = field(default_factory=dict[str, float])
    checks: dict[str, str | None] = field(default_factory=dict[str, str | None])

    @property
    def faults(self) -> list[str]:
        """Each promise that does not hold."""
        return [f"{promise}: {reason}" for promise, reason in self.checks.items() if reason is not None]

    def as_json(self) -> dict[str, Any]:
        """All of it."""
        return asdict(self)
