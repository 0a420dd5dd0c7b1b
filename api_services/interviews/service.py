"""Interviews as the bot sees them. Ending one changes its status at once and leaves everything slow to the queue."""

from datetime import datetime
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from api_services.entities import Credits
from api_services.errors import ConflictError, InvalidInputError, InvalidStateError
from api_services.interviews.messages import FailureCode, InterviewCompleted, InterviewFailed
from api_services.interviews.models import Interview, InterviewCredits, InterviewStatus, Proctoring, Transcript
from api_services.interviews.producer import send_interview_completed, send_interview_failed
from api_services.interviews.repository import InterviewRepository
from api_services.messages import Identifier
from api_services.mongo import DUPLICATE_KEY
from api_services.request_context import new_request_id
from api_services.sqs import QueueSender

V = TypeVar("V")

_IDENTIFIER: TypeAdapter[str] = TypeAdapter(Identifier)
_FAILURE_CODE: TypeAdapter[str] = TypeAdapter(FailureCode)
_CREDITS: TypeAdapter[int] = TypeAdapter(Credits)


def create_interview(
    interviews: InterviewRepository,
    *,
    organization_id: str,
    credits_required: int,
    now: datetime,
    interview_id: str | None = None,
) -> Interview:
    """Store a new interview that will cost `credits_required` whole credits when it completes.

    With an `interview_id` of the caller's, the same call again returns what is stored. Raises `InvalidInputError`
    for values out of bounds, `ConflictError` when the id is taken by an interview of other terms.
    """
    interview = Interview(
        interview_id=_valid(_IDENTIFIER, interview_id, "interviewId") if interview_id else new_request_id(),
        organization_id=_valid(_IDENTIFIER, organization_id, "organizationId"),
        status=InterviewStatus.CREATED,
        credits=InterviewCredits(required=_valid(_CREDITS, credits_required, "credits")),
        created_at=now,
    )
    try:
        interviews.insert(interview)
    except ConflictError as exc:
        if exc.code != DUPLICATE_KEY:
            raise
        existing = interviews.get(interview.interview_id)
        same_terms = (existing.organization_id, existing.credits.required) == (organization_id, credits_required)
        if not same_terms:
            raise ConflictError(
                f"Interview '{interview.interview_id}' exists with another organization or other credits",
                interview_id=interview.interview_id,
            ) from exc
        return existing
    return interview


def get_interview(interviews: InterviewRepository, interview_id: str) -> Interview:
    """The interview; `NotFoundError` when there is none."""
    return interviews.get(interview_id)


def record_transcript(interviews: InterviewRepository, interview_id: str, transcript: Transcript) -> Interview:
    """Keep the transcript, in place of an earlier one; recording the same again changes nothing.

    Raises `NotFoundError`, or `InvalidStateError` once the interview has ended, since its report may be written.
    """
    interview = interviews.get(interview_id)
    if interview.status.is_terminal:
        if interviews.transcript(interview_id) == transcript:
            return interview
        raise _has_ended(interview)
    interviews.put_transcript(interview_id, transcript)
    return interview


def record_proctoring(interviews: InterviewRepository, interview_id: str, proctoring: Proctoring) -> Interview:
    """Keep the proctoring data, in place of earlier ones; recording the same again changes nothing.

    Raises `NotFoundError`, or `InvalidStateError` once the interview has ended.
    """
    interview = interviews.get(interview_id)
    if interview.status.is_terminal:
        if interviews.proctoring(interview_id) == proctoring:
            return interview
        raise _has_ended(interview)
    interviews.put_proctoring(interview_id, proctoring)
    return interview


def complete_interview(
    interviews: InterviewRepository, queue: QueueSender, interview_id: str, *, now: datetime
) -> Interview:
    """End the interview as completed, then have it settled.

    Completing again is no error: while it is not settled its message is sent again, which repairs an earlier call
    that ended between the two steps. Raises `NotFoundError`, `InvalidStateError` when it has failed, and
    `DependencyError` when the queue does not answer; the status is kept, and the next call or the reconciler
    sends the message.
    """
    return _end(interviews, queue, interview_id, InterviewStatus.COMPLETED, None, now)


def fail_interview(
    interviews: InterviewRepository, queue: QueueSender, interview_id: str, *, failure_code: str, now: datetime
) -> Interview:
    """End the interview as failed, then have it settled; as `complete_interview` in every other respect.

    Failing again with another code keeps the first one. Raises `InvalidInputError` for a code that is not lower
    snake case.
    """
    code = _valid(_FAILURE_CODE, failure_code, "failureCode")
    return _end(interviews, queue, interview_id, InterviewStatus.FAILED, code, now)


def settlement_message(interview: Interview) -> InterviewCompleted | InterviewFailed:
    """What the queue carries for an interview that has ended; `InvalidStateError` for one that has not."""
    if interview.ended_at is None or not interview.status.is_terminal:
        raise InvalidStateError(
            f"Interview '{interview.interview_id}' has not ended", interview_id=interview.interview_id
        )
    if interview.status is InterviewStatus.COMPLETED:
        return InterviewCompleted(
            interview_id=interview.interview_id,
            organization_id=interview.organization_id,
            ended_at=interview.ended_at,
        )
    return InterviewFailed(
        interview_id=interview.interview_id,
        organization_id=interview.organization_id,
        ended_at=interview.ended_at,
        failure_code=interview.failure_code or "unknown",
    )


def _end(
    interviews: InterviewRepository,
    queue: QueueSender,
    interview_id: str,
    status: InterviewStatus,
    failure_code: str | None,
    now: datetime,
) -> Interview:
    interview = interviews.end(interview_id, status, ended_at=now, failure_code=failure_code)
    if interview is None:
        interview = interviews.get(interview_id)
        if interview.status is not status:
            raise _has_ended(interview)
    if interview.settled_at is None:
        _announce(queue, interview)
    return interview


def _announce(queue: QueueSender, interview: Interview) -> None:
    message = settlement_message(interview)
    if isinstance(message, InterviewCompleted):
        send_interview_completed(
            queue,
            interview_id=message.interview_id,
            organization_id=message.organization_id,
            ended_at=message.ended_at,
        )
    else:
        send_interview_failed(
            queue,
            interview_id=message.interview_id,
            organization_id=message.organization_id,
            ended_at=message.ended_at,
            failure_code=message.failure_code,
        )


def _has_ended(interview: Interview) -> InvalidStateError:
    return InvalidStateError(
        f"Interview '{interview.interview_id}' has ended as {interview.status}",
        code="interview_has_ended",
        interview_id=interview.interview_id,
    )


def _valid(adapter: TypeAdapter[V], value: V, name: str) -> V:
    try:
        return adapter.validate_python(value)
    except ValidationError as exc:
        raise InvalidInputError(f"{name}: {exc.errors(include_url=False)[0]['msg']}") from exc
