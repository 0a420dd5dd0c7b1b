"""Closes the gaps that a crash between two steps can leave: what ended and was not settled, what was settled and has no
report. It only sends messages; sending one too many is harmless, since every consumer claims before it works."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, TypeVar

from api_services.interviews.models import Interview
from api_services.interviews.repository import InterviewRepository
from api_services.interviews.service import settlement_message
from api_services.mongo import MongoDatabase
from api_services.queues import INTERVIEW_COMPLETED, REPORT_GENERATE
from api_services.reports.messages import GenerateReport
from api_services.reports.repository import ReportRepository
from api_services.sqs import QueueSender

P = TypeVar("P")

logger = logging.getLogger(__name__)

GRACE: Final = timedelta(minutes=15)
"""Within this the normal way is given time: nothing younger is sent, and nothing is sent again."""
PAGE_SIZE: Final = 100
MAX_PAGES: Final = 50
RESERVE_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class ReconcileCollaborators:
    """What the reconciler reads and where it sends."""

    interviews: InterviewRepository
    reports: ReportRepository
    queue: QueueSender

    @classmethod
    def of(cls, database: MongoDatabase, queue: QueueSender) -> "ReconcileCollaborators":
        return cls(InterviewRepository(database), ReportRepository(database), queue)


@dataclass(frozen=True, slots=True)
class Reconciled:
    """How many were found of each kind; `complete` is false when a bound was reached and more may be left."""

    unsettled: int
    without_report: int
    expired_leases: int
    complete: bool


def find_gaps(collaborators: ReconcileCollaborators, *, now: datetime, grace: timedelta = GRACE) -> Reconciled:
    """What `reconcile_interviews` would send, up to one page of each kind; sends nothing."""
    since = now - grace
    unsettled = collaborators.interviews.unsettled(ended_before=since, limit=PAGE_SIZE)
    waiting = collaborators.interviews.awaiting_report(settled_before=since, limit=PAGE_SIZE)
    expired = collaborators.reports.with_expired_lease(now=now, not_enqueued_since=since, limit=PAGE_SIZE)
    expired = [one for one in expired if one not in {interview.interview_id for interview in waiting}]
    complete = max(len(unsettled), len(waiting), len(expired)) < PAGE_SIZE
    return Reconciled(len(unsettled), len(waiting), len(expired), complete)


def reconcile_interviews(
    collaborators: ReconcileCollaborators,
    *,
    now: datetime,
    remaining_seconds: Callable[[], float],
    grace: timedelta = GRACE,
) -> Reconciled:
    """Enqueue what ended before `now - grace` and is not settled, what was settled before that and has no report, and
    reports whose writer is gone.

    Works in pages, the oldest first, and stops before the time is over; the next run goes on. Raises
    `DependencyError` when the database or a queue does not answer.
    """
    since = now - grace
    interviews, reports, queue = collaborators.interviews, collaborators.reports, collaborators.queue

    def settle(page: Sequence[Interview]) -> None:
        queue.send_batch(INTERVIEW_COMPLETED, [settlement_message(interview) for interview in page])
        interviews.mark_enqueued([interview.interview_id for interview in page], now)

    def report(page: Sequence[Interview]) -> None:
        ids = [interview.interview_id for interview in page]
        queue.send_batch(REPORT_GENERATE, [GenerateReport(interview_id=interview_id) for interview_id in ids])
        interviews.mark_report_enqueued(ids, now)
        # Their leases, where expired, need no second message.
        reports.mark_enqueued(ids, now)

    def report_again(page: Sequence[str]) -> None:
        queue.send_batch(REPORT_GENERATE, [GenerateReport(interview_id=interview_id) for interview_id in page])
        reports.mark_enqueued(page, now)

    def in_time() -> bool:
        return remaining_seconds() > RESERVE_SECONDS

    unsettled, all_settled = _pages(lambda: interviews.unsettled(ended_before=since, limit=PAGE_SIZE), settle, in_time)
    waiting, all_reported = _pages(
        lambda: interviews.awaiting_report(settled_before=since, limit=PAGE_SIZE), report, in_time
    )
    expired, all_taken_over = _pages(
        lambda: reports.with_expired_lease(now=now, not_enqueued_since=since, limit=PAGE_SIZE), report_again, in_time
    )
    result = Reconciled(unsettled, waiting, expired, all_settled and all_reported and all_taken_over)
    logger.info(
        "reconcile.done",
        extra={
            "unsettled": result.unsettled,
            "withoutReport": result.without_report,
            "expiredLeases": result.expired_leases,
            "complete": result.complete,
        },
    )
    return result


def _pages(
    read: Callable[[], Sequence[P]], send: Callable[[Sequence[P]], None], in_time: Callable[[], bool]
) -> tuple[int, bool]:
    """Send page after page; what was sent is marked and not read again. How many, and whether that was all."""
    sent = 0
    for _ in range(MAX_PAGES):
        if not in_time():
            return sent, False
        page = read()
        if page:
            send(page)
            sent += len(page)
        if len(page) < PAGE_SIZE:
            return sent, True
    return sent, False
