"""The API on fakes, and the keys that open it."""

import hashlib
import json
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from datetime import UTC, datetime
from typing import Any

from fastapi import FastAPI

from api_services.credits.repository import CreditRepository
from api_services.documents.models import SearchHit, SearchPage
from api_services.documents.repository import DocumentRepository
from api_services.errors import ConflictError, NotFoundError
from api_services.http.app import create_app
from api_services.http.auth import ApiKeys
from api_services.http.dependencies import ApiDependencies
from api_services.interviews.models import Interview, InterviewStatus, Proctoring, Transcript
from api_services.interviews.repository import InterviewRepository
from api_services.mongo import DUPLICATE_KEY
from api_services.reports.models import Report
from api_services.reports.repository import ReportRepository
from tests.support.fakes import FakeQueueSender

NOW = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
KEYS = {"bot": "bot-key-of-the-tests", "portal": "portal-key-of-the-tests", "admin": "admin-key-of-the-tests"}


def secret(keys: Mapping[str, str] = KEYS) -> str:
    """The api-keys secret for these keys."""
    return json.dumps({role: [hashlib.sha256(key.encode()).hexdigest()] for role, key in keys.items()})


def as_role(role: str) -> dict[str, str]:
    """The header that opens that role's routes."""
    return {"Authorization": f"Bearer {KEYS[role]}"}


class FakeInterviewRepository(InterviewRepository):
    """Interviews in memory."""

    def __init__(self) -> None:
        self.interviews: dict[str, Interview] = {}
        self.transcripts: dict[str, Transcript] = {}
        self.proctorings: dict[str, Proctoring] = {}
        self.fail_with: Exception | None = None

    def insert(self, interview: Interview) -> None:
        if interview.interview_id in self.interviews:
            raise ConflictError("exists", code=DUPLICATE_KEY)
        self.interviews[interview.interview_id] = interview

    def get(self, interview_id: str) -> Interview:
        if self.fail_with is not None:
            raise self.fail_with
        if interview_id not in self.interviews:
            raise NotFoundError(f"There is no interview '{interview_id}'")
        return self.interviews[interview_id]

    def end(
        self, interview_id: str, status: InterviewStatus, *, ended_at: datetime, failure_code: str | None
    ) -> Interview | None:
        found = self.interviews.get(interview_id)
        if found is None or found.status.is_terminal:
            return None
        changed = found.model_copy(update={"status": status, "ended_at": ended_at, "failure_code": failure_code})
        self.interviews[interview_id] = changed
        return changed

    def put_transcript(self, interview_id: str, transcript: Transcript) -> None:
        self.transcripts[interview_id] = transcript

    def put_proctoring(self, interview_id: str, proctoring: Proctoring) -> None:
        self.proctorings[interview_id] = proctoring

    def transcript(self, interview_id: str) -> Transcript | None:
        return self.transcripts.get(interview_id)

    def proctoring(self, interview_id: str) -> Proctoring | None:
        return self.proctorings.get(interview_id)


class FakeReportRepository(ReportRepository):
    """Reports in memory."""

    def __init__(self) -> None:
        self.reports: dict[str, Report] = {}

    def get(self, interview_id: str) -> Report | None:
        return self.reports.get(interview_id)


class FakeSearch:
    """Answers each query with one hit that holds it."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []

    def __call__(self, *, query: str, document_ids: tuple[str, ...], limit: int, cursor: str | None) -> SearchPage:
        self.asked.append({"query": query, "document_ids": document_ids, "limit": limit, "cursor": cursor})
        hit = SearchHit(
            document_id="handbook",
            version=1,
            document_title="Handbook",
            chunk_number=0,
            heading="Leave",
            title="Leave",
            summary="About leave.",
            keywords=("leave",),
            snippet="Ask <b>early</b> for leave.",
            highlights=((21, 26),),
            score=0.5,
        )
        return SearchPage(query=query, hits=(hit,), next_cursor=None)


class Api:
    """The application with the fakes behind it."""

    def __init__(self, checks: Mapping[str, Callable[[], None]] | None = None, **options: Any) -> None:
        self.interviews = FakeInterviewRepository()
        self.reports = FakeReportRepository()
        self.sender = FakeQueueSender()
        self.search = FakeSearch()
        self.dependencies = ApiDependencies(
            keys=ApiKeys.parse(secret()),
            interviews=self.interviews,
            credits=CreditRepository.__new__(CreditRepository),
            reports=self.reports,
            documents=DocumentRepository.__new__(DocumentRepository),
            sender=self.sender,
            search=self.search,
            secure_cookies=False,
            clock=lambda: NOW,
            checks=checks or {},
        )
        self.app: FastAPI = create_app(lambda: nullcontext(self.dependencies), **options)
