"""What the routes work with, and how a process builds it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Protocol

from fastapi import Depends, Request

from api_services.clock import Clock, utc_now
from api_services.credits.repository import CreditRepository
from api_services.documents.models import SearchPage
from api_services.documents.repository import DocumentRepository
from api_services.http.auth import ApiKeys
from api_services.interviews.repository import InterviewRepository
from api_services.reports.repository import ReportRepository
from api_services.sqs import QueueSender


class Search(Protocol):
    """`api_services.documents.search.search` with its index and embedder."""

    def __call__(self, *, query: str, document_ids: tuple[str, ...], limit: int, cursor: str | None) -> SearchPage: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiDependencies:
    """Collaborators of the services; `checks` is what readiness asks, each raising `AppError` when it is not."""

    keys: ApiKeys
    interviews: InterviewRepository
    credits: CreditRepository
    reports: ReportRepository
    documents: DocumentRepository
    sender: QueueSender
    search: Search
    secure_cookies: bool = True
    clock: Clock = utc_now
    checks: Mapping[str, Callable[[], None]] = field(default_factory=dict[str, Callable[[], None]])


def _dependencies(request: Request) -> ApiDependencies:
    return request.app.state.dependencies


Deps = Annotated[ApiDependencies, Depends(_dependencies)]
