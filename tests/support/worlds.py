"""A small world for tests of interviews, credits and reports: a database, a clock that stands still, kept messages."""

from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from pymongo.database import Database

from api_services.credits import service as credits_service
from api_services.credits.invariants import check_invariants
from api_services.credits.models import Balance, Grant, Settlement
from api_services.credits.repository import CreditRepository
from api_services.credits.settlement import (
    SettlementCollaborators,
    SettlementMessage,
    settle_many,
)
from api_services.interviews import service as interviews_service
from api_services.interviews.models import Interview, Transcript, Turn
from api_services.interviews.repository import InterviewRepository
from api_services.interviews.service import settlement_message
from api_services.reports.repository import ReportRepository
from tests.support.fakes import FakeQueueSender

START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


class World:
    """`now` moves only when a test moves it."""

    def __init__(self, database: Database[dict[str, Any]]) -> None:
        self.database = database
        self.now = START
        self.queue = FakeQueueSender()
        self.interviews = InterviewRepository(database)
        self.credits = CreditRepository(database)
        self.reports = ReportRepository(database)
        self.settlement = SettlementCollaborators(database, self.interviews, self.credits, self.queue)
        self._numbers = count(1)

    def pass_time(self, **parts: float) -> None:
        self.now += timedelta(**parts)

    def grant(
        self, amount: int, *, organization: str = "acme", expires_at: datetime | None = None, key: str | None = None
    ) -> Grant:
        return credits_service.grant_credits(
            self.credits,
            organization_id=organization,
            amount=amount,
            idempotency_key=key or f"order-{next(self._numbers)}",
            now=self.now,
            expires_at=expires_at,
        )

    def create(self, *, organization: str = "acme", credits_required: int = 10) -> Interview:
        return interviews_service.create_interview(
            self.interviews,
            organization_id=organization,
            credits_required=credits_required,
            now=self.now,
            interview_id=f"iv-{next(self._numbers)}",
        )

    def completed(self, *, organization: str = "acme", credits_required: int = 10) -> Interview:
        interview = self.create(organization=organization, credits_required=credits_required)
        return interviews_service.complete_interview(self.interviews, self.queue, interview.interview_id, now=self.now)

    def failed(self, *, organization: str = "acme", code: str = "no_show", credits_required: int = 10) -> Interview:
        interview = self.create(organization=organization, credits_required=credits_required)
        return interviews_service.fail_interview(
            self.interviews, self.queue, interview.interview_id, failure_code=code, now=self.now
        )

    def settle(self, *interviews: Interview | SettlementMessage, timeout_seconds: float = 10) -> list[Settlement]:
        messages = [settlement_message(each) if isinstance(each, Interview) else each for each in interviews]
        return settle_many(self.settlement, messages, now=self.now, timeout_seconds=timeout_seconds)

    def settled(self, *, organization: str = "acme", credits_required: int = 10) -> Interview:
        """A completed, settled interview with a transcript."""
        interview = self.create(organization=organization, credits_required=credits_required)
        interviews_service.record_transcript(self.interviews, interview.interview_id, conversation())
        interviews_service.complete_interview(self.interviews, self.queue, interview.interview_id, now=self.now)
        self.settle(self.stored(interview))
        return self.stored(interview)

    def stored(self, interview: Interview) -> Interview:
        return self.interviews.get(interview.interview_id)

    def balance(self, organization: str = "acme") -> Balance:
        return credits_service.balance(self.credits, organization, now=self.now)

    def amounts(self, organization: str = "acme") -> list[int]:
        """Amounts of the ledger, oldest first."""
        page = credits_service.ledger(self.credits, organization, limit=200)
        return [entry.amount for entry in reversed(page.items)]

    def snapshot(self) -> dict[str, list[dict[str, Any]]]:
        """Everything stored, so that a test can say that nothing changed."""
        return {
            name: list(self.database[name].find(sort=[("_id", 1)]))
            for name in sorted(self.database.list_collection_names())
        }

    def assert_consistent(self) -> None:
        assert [str(violation) for violation in check_invariants(self.database)] == []


def conversation(words: str = "I traced the deadlock with logs over two days and wrote a test for it.") -> Transcript:
    return Transcript(
        turns=(
            Turn(speaker="interviewer", text="Tell me about a hard problem."),
            Turn(speaker="candidate", text=words),
        )
    )
