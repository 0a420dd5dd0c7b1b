"""Settling interviews: each is charged once, however often, in whatever order and on however many consumers its
message is delivered.

The claim and the charge are one transaction. The interview's own state decides what is charged; the message only says
that there is something to settle, and one that contradicts the state is refused.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from api_services import metrics
from api_services.credits.allocation import Charge, Draw, allocate
from api_services.credits.models import Settlement
from api_services.credits.policy import RETENTION, credits_for_failure
from api_services.credits.repository import CreditRepository
from api_services.errors import (
    AppError,
    BusyError,
    ConflictError,
    InvalidInputError,
    InvalidStateError,
    NotFoundError,
)
from api_services.interviews.messages import InterviewCompleted, InterviewFailed
from api_services.interviews.models import InterviewStatus
from api_services.interviews.repository import Claim, InterviewRepository, SettlementState
from api_services.mongo import DUPLICATE_KEY, MongoDatabase, Session, run_in_transaction
from api_services.queues import REPORT_GENERATE
from api_services.reports.messages import GenerateReport
from api_services.sqs import QueueSender

logger = logging.getLogger(__name__)

SettlementMessage = InterviewCompleted | InterviewFailed

MAX_TRANSACTION_SECONDS: Final = 15.0
"""A quarter of the function's time: a database in trouble must not use up the whole batch's."""

MAX_GROUP: Final = 100
"""Interviews of one organization settled in one transaction."""


@dataclass(frozen=True, slots=True)
class SettlementCollaborators:
    """What settlement works with."""

    database: MongoDatabase
    interviews: InterviewRepository
    credits: CreditRepository
    queue: QueueSender

    @classmethod
    def of(cls, database: MongoDatabase, queue: QueueSender) -> "SettlementCollaborators":
        return cls(database, InterviewRepository(database), CreditRepository(database), queue)


def settle_completed_interview(
    collaborators: SettlementCollaborators, message: InterviewCompleted, *, now: datetime, timeout_seconds: float
) -> Settlement:
    """Charge a completed interview, once, and after the commit enqueue its report.

    A shortage becomes an overdraft and blocks nothing. Raises `NotFoundError` for an unknown interview,
    `InvalidStateError` for one that is not completed or not the organization's, `TransientError` where a repetition
    may succeed; a repetition is always harmless.
    """
    return settle_many(collaborators, (message,), now=now, timeout_seconds=timeout_seconds)[0]


def settle_failed_interview(
    collaborators: SettlementCollaborators, message: InterviewFailed, *, now: datetime, timeout_seconds: float
) -> Settlement:
    """Settle a failed interview with what the policy charges for its failure; errors as for a completed one."""
    return settle_many(collaborators, (message,), now=now, timeout_seconds=timeout_seconds)[0]


def settle_many(
    collaborators: SettlementCollaborators,
    messages: Sequence[SettlementMessage],
    *,
    now: datetime,
    timeout_seconds: float,
    request_ids: Sequence[str | None] | None = None,
) -> list[Settlement]:
    """Settle interviews of one organization in one transaction: all of them, or, when it raises, none.

    The result is in the order of `messages`; of two messages for one interview only the first settles. `request_ids`
    are those of the messages, where they differ. Errors as for one interview.
    """
    if not messages:
        return []
    if len(messages) > MAX_GROUP:
        raise InvalidInputError(f"At most {MAX_GROUP} interviews are settled together")
    if len({message.organization_id for message in messages}) > 1:
        raise InvalidInputError("Interviews settled together belong to one organization")

    def settle(session: Session) -> list[Settlement]:
        claims = _claim(collaborators.interviews, messages, now, session)
        _charge(collaborators.credits, claims, now, session)
        return _outcomes(messages, claims)

    try:
        settlements = run_in_transaction(
            collaborators.database, settle, timeout_seconds=min(timeout_seconds, MAX_TRANSACTION_SECONDS)
        )
    except ConflictError as exc:
        if exc.code != DUPLICATE_KEY:
            raise
        raise BusyError("Another consumer wrote the same entry at the same moment") from exc
    _enqueue_reports(collaborators.queue, settlements, request_ids)
    return settlements


def _claim(
    interviews: InterviewRepository, messages: Sequence[SettlementMessage], now: datetime, session: Session
) -> list[Claim]:
    """Claim every interview not yet settled; raises for one that cannot be."""
    if len(messages) == 1 and isinstance(messages[0], InterviewCompleted):
        claim = interviews.claim_completed(
            messages[0].interview_id,
            ended_at=messages[0].ended_at,
            now=now,
            retention=RETENTION,
            session=session,
        )
        if claim is not None:
            _check_organization(messages[0], claim.organization_id)
            return [claim]
    distinct = {message.interview_id: message for message in reversed(messages)}
    states = interviews.settlement_states(list(distinct), session)
    claims = [
        _claim_of(message, state)
        for interview_id, message in distinct.items()
        if not (state := _existing(states, interview_id)).settled
    ]
    if claims and interviews.claim_all(claims, now=now, retention=RETENTION, session=session) != len(claims):
        raise BusyError("An interview changed while it was claimed")
    return claims


def _existing(states: dict[str, SettlementState], interview_id: str) -> SettlementState:
    if interview_id not in states:
        raise NotFoundError(f"There is no interview '{interview_id}' to settle", interview_id=interview_id)
    return states[interview_id]


def _claim_of(message: SettlementMessage, state: SettlementState) -> Claim:
    _check_organization(message, state.organization_id)
    expected = InterviewStatus.COMPLETED if isinstance(message, InterviewCompleted) else InterviewStatus.FAILED
    if state.status is not expected:
        raise InvalidStateError(
            f"The message says {expected}, but interview '{state.interview_id}' is {state.status}; "
            "its own state decides, and the reconciler settles it by that",
            code="message_contradicts_state",
            interview_id=state.interview_id,
        )
    consumed = (
        state.required
        if state.status is InterviewStatus.COMPLETED
        else credits_for_failure(state.failure_code or "unknown", state.required)
    )
    return Claim(state.interview_id, state.organization_id, state.status, consumed, state.ended_at or message.ended_at)


def _check_organization(message: SettlementMessage, organization_id: str) -> None:
    if message.organization_id != organization_id:
        raise InvalidStateError(
            f"Interview '{message.interview_id}' does not belong to organization '{message.organization_id}'",
            code="organization_mismatch",
            interview_id=message.interview_id,
        )


def _charge(credits: CreditRepository, claims: Sequence[Claim], now: datetime, session: Session) -> None:
    charges = [Charge(claim.interview_id, claim.consumed, claim.ended_at) for claim in claims if claim.consumed]
    if not charges:
        return
    organization_id = claims[0].organization_id
    drawn = credits.draw_soonest(organization_id, charges[0], session) if len(charges) == 1 else None
    if drawn is not None:
        left = charges[0].credits - drawn.credits
        charges = [replace(charges[0], credits=left)] if left else []
    draws: list[Draw] = []
    if charges:
        lots = credits.open_lots(
            organization_id,
            alive_after=min(charge.ended_at for charge in charges),
            all_alive_after=max(charge.ended_at for charge in charges),
            enough=sum(charge.credits for charge in charges),
            session=session,
        )
        draws = allocate(charges, lots)
    credits.record_draws(organization_id, draws, drawn=drawn, now=now, session=session)


def _outcomes(messages: Sequence[SettlementMessage], claims: Sequence[Claim]) -> list[Settlement]:
    unreported = {claim.interview_id: claim for claim in claims}
    settlements: list[Settlement] = []
    for message in messages:
        claim = unreported.pop(message.interview_id, None)
        settlements.append(
            Settlement(message.interview_id, settled=False)
            if claim is None
            else Settlement(claim.interview_id, settled=True, consumed=claim.consumed, report_due=claim.report_due)
        )
    return settlements


def _enqueue_reports(
    queue: QueueSender, settlements: Sequence[Settlement], request_ids: Sequence[str | None] | None
) -> None:
    """The settlement is committed: a failure here must not bring the message back, which would find nothing to do.
    The interview says that its report is pending, and the reconciler enqueues it."""
    due = [position for position, settlement in enumerate(settlements) if settlement.report_due]
    if not due:
        return
    messages = [GenerateReport(interview_id=settlements[position].interview_id) for position in due]
    ids = None if request_ids is None else [request_ids[position] for position in due]
    try:
        queue.send_batch(REPORT_GENERATE, messages, request_ids=ids)
    except AppError as exc:
        # error-ends-here: logged and counted; the reconciler closes the gap.
        interview_ids = [message.interview_id for message in messages]
        logger.error("settlement.report_enqueue_failed", extra={"interviewIds": interview_ids, "code": exc.code})
        metrics.emit(metrics.REPORT_ENQUEUE_FAILED, len(messages))
