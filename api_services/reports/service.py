"""Writing reports: one claim, one paid answer, one report, whatever is delivered twice or dies half-way."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Final

from pydantic import ValidationError

from api_services import metrics
from api_services.clock import Clock, utc_now
from api_services.errors import (
    AppError,
    BusyError,
    InvalidStateError,
    PermanentError,
    QuotaExhaustedError,
    TransientError,
)
from api_services.interviews.models import Interview, InterviewStatus
from api_services.interviews.repository import InterviewRepository
from api_services.llm.client import (
    Answer,
    ChatMessage,
    LanguageModel,
    MalformedAnswerError,
    OpenAILanguageModel,
    RefusedAnswerError,
    TruncatedAnswerError,
)
from api_services.llm.costs import TokenUsage, cost_micro_usd
from api_services.mongo import MongoDatabase
from api_services.reports.models import (
    ATTEMPTS_EXHAUSTED,
    REFUSED,
    TRANSCRIPT_MISSING,
    TRUNCATED,
    Report,
    ReportContent,
    ReportStatus,
    StoredAnswer,
)
from api_services.reports.producer import send_generate_report
from api_services.reports.prompt import answer_key, report_messages
from api_services.reports.repository import ReportClaim, ReportRepository, Unclaimed
from api_services.settings import LangfuseSettings, OpenAISettings
from api_services.sqs import QueueSender
from api_services.tracing import Tracer, tracer_for

logger = logging.getLogger(__name__)

OUTPUT_TOKENS: Final = 6_000
OUTPUT_TOKENS_AFTER_TRUNCATION: Final = 18_000
"""Both include what a reasoning model thinks before it writes."""
RESERVE_SECONDS: Final = 10.0
"""Kept free at the end of the function for storing the answer and the report, and for sending the trace."""
MIN_WORK_SECONDS: Final = 5.0
FLUSH_SECONDS: Final = 3.0
BUSY_MARGIN_SECONDS: Final = 1.0


class ReportOutcome(StrEnum):
    WRITTEN = "written"
    ALREADY_WRITTEN = "already_written"
    FAILED = "failed"
    LOST_CLAIM = "lost_claim"


@dataclass(frozen=True, slots=True)
class ReportCollaborators:
    """What writing reports works with; `model` is the language model's name."""

    interviews: InterviewRepository
    reports: ReportRepository
    llm: LanguageModel
    model: str
    tracer: Tracer
    reserve_seconds: float = RESERVE_SECONDS

    @classmethod
    def of(
        cls, database: MongoDatabase, openai_settings: OpenAISettings, langfuse_settings: LangfuseSettings
    ) -> "ReportCollaborators":
        """The real ones."""
        tracer = tracer_for(langfuse_settings)
        llm = OpenAILanguageModel(openai_settings, tracer)
        return cls(InterviewRepository(database), ReportRepository(database), llm, openai_settings.report_model, tracer)


def generate_report(
    collaborators: ReportCollaborators,
    interview_id: str,
    *,
    remaining_seconds: Callable[[], float],
    clock: Clock = utc_now,
) -> ReportOutcome:
    """Write the report of a settled, completed interview, unless it is written.

    Returns also where no delivery can help any more: the model refused, the answer stayed too long, or the attempts
    are used up; the report is FAILED then. Raises `NotFoundError`, `InvalidStateError` for an interview that is not
    completed and settled, `BusyError` while another consumer writes it, `TransientError` for faults of the model or
    the database, `QuotaExhaustedError` and other `PermanentError` where a human must act. Takes no longer than
    `remaining_seconds()` says at the start.
    """
    interview = collaborators.interviews.get(interview_id)
    if interview.status is not InterviewStatus.COMPLETED or interview.settled_at is None:
        raise InvalidStateError(f"Interview '{interview_id}' is not completed and settled", interview_id=interview_id)
    remaining = remaining_seconds()
    if remaining - collaborators.reserve_seconds < MIN_WORK_SECONDS:
        raise BusyError("Too little time is left to write a report", code="out_of_time", interview_id=interview_id)
    now = clock()
    claim = collaborators.reports.claim(
        interview_id, interview.organization_id, now=now, lease_expires_at=now + timedelta(seconds=remaining)
    )
    if isinstance(claim, Unclaimed):
        if claim.lease_expires_at is not None:
            wait = (claim.lease_expires_at - now).total_seconds() + BUSY_MARGIN_SECONDS
            raise BusyError("Another consumer writes this report", retry_after_seconds=wait, interview_id=interview_id)
        collaborators.interviews.set_report_pending(interview_id, pending=False)
        return ReportOutcome.ALREADY_WRITTEN if claim.reason == "completed" else ReportOutcome.FAILED
    return _Attempt(collaborators, interview, claim, remaining_seconds, clock).run()


def get_report(reports: ReportRepository, interviews: InterviewRepository, interview_id: str) -> Report:
    """The interview's report; NOT_STARTED where nobody has begun it. `NotFoundError` for an unknown interview."""
    report = reports.get(interview_id)
    if report is not None:
        return report
    interview = interviews.get(interview_id)
    return Report(interview_id=interview_id, organization_id=interview.organization_id, status=ReportStatus.NOT_STARTED)


def reset_report(
    reports: ReportRepository,
    interviews: InterviewRepository,
    queue: QueueSender,
    interview_id: str,
    *,
    clock: Clock = utc_now,
) -> Report:
    """Forget the attempts of a report that is not written, and enqueue it again.

    Raises `NotFoundError`, and `InvalidStateError` when the report is written or being written, or the interview is
    not completed and settled.
    """
    interview = interviews.get(interview_id)
    if interview.status is not InterviewStatus.COMPLETED or interview.settled_at is None:
        raise InvalidStateError(f"Interview '{interview_id}' is not completed and settled", interview_id=interview_id)
    report = get_report(reports, interviews, interview_id)
    if report.status is ReportStatus.COMPLETED:
        raise InvalidStateError(f"The report of interview '{interview_id}' is written", interview_id=interview_id)
    if reports.get(interview_id) is not None and not reports.reset(interview_id, now=clock()):
        raise InvalidStateError(
            f"The report of interview '{interview_id}' is being written; wait until its lease has expired",
            interview_id=interview_id,
        )
    interviews.set_report_pending(interview_id, pending=True)
    send_generate_report(queue, interview_id=interview_id)
    return get_report(reports, interviews, interview_id)


class _Attempt:
    """One claimed attempt, from the claim to its end."""

    def __init__(
        self,
        collaborators: ReportCollaborators,
        interview: Interview,
        claim: ReportClaim,
        remaining_seconds: Callable[[], float],
        clock: Clock,
    ) -> None:
        self._c = collaborators
        self._interview = interview
        self._claim = claim
        self._remaining_seconds = remaining_seconds
        self._clock = clock
        self._spent = TokenUsage()

    def run(self) -> ReportOutcome:
        try:
            return self._write()
        except RefusedAnswerError as exc:
            return self._failed(REFUSED, detail=exc.text, usage=exc.usage)
        except TruncatedAnswerError as exc:
            return self._failed(TRUNCATED, usage=exc.usage)
        except QuotaExhaustedError as exc:
            # The message goes to the dead-letter queue, from where it may be redriven; the reconciler leaves it alone.
            self._c.reports.fail(self._claim, exc.code, final=False, count_attempt=False)
            self._c.interviews.set_report_pending(self._interview.interview_id, pending=False)
            raise
        except PermanentError as exc:
            self._failed(exc.code)
            raise
        except TransientError as exc:
            usage = exc.usage if isinstance(exc, MalformedAnswerError) else None
            if self._claim.is_last:
                # error-ends-here: after the last attempt the report is FAILED and its message is consumed.
                return self._failed(ATTEMPTS_EXHAUSTED, detail=exc.code, usage=usage)
            self._give_back(exc, usage)
            raise
        finally:
            self._c.tracer.flush(max(0.0, min(FLUSH_SECONDS, self._remaining_seconds() - BUSY_MARGIN_SECONDS)))

    def _write(self) -> ReportOutcome:
        interview_id = self._interview.interview_id
        transcript = self._c.interviews.transcript(interview_id)
        if transcript is None:
            return self._failed(TRANSCRIPT_MISSING)
        messages = report_messages(transcript, self._c.interviews.proctoring(interview_id))
        key = answer_key(interview_id, self._c.model, messages)
        answer = self._c.reports.stored_answer(key)
        if answer is None:
            answer = _stored(self._ask(messages), self._clock)
            self._c.reports.store_answer(key, answer)
        try:
            content = ReportContent.model_validate_json(answer.text)
        except ValidationError as exc:
            raise MalformedAnswerError(TokenUsage()) from exc
        written = self._c.reports.complete(
            self._claim,
            content,
            model=answer.model,
            usage=answer.usage + self._spent,
            cost_micro_usd=(answer.cost_micro_usd or 0) + self._cost_of(self._spent),
            now=self._clock(),
        )
        if not written:
            logger.warning("report.claim_lost", extra={"interviewId": interview_id})
            return ReportOutcome.LOST_CLAIM
        self._c.interviews.set_report_pending(interview_id, pending=False)
        metrics.emit(metrics.REPORT_COST_USD, (answer.cost_micro_usd or 0) / 1_000_000, unit="None")
        return ReportOutcome.WRITTEN

    def _ask(self, messages: list[ChatMessage]) -> Answer[ReportContent]:
        try:
            return self._call(messages, OUTPUT_TOKENS)
        except TruncatedAnswerError as exc:
            self._spent += exc.usage
            return self._call(messages, OUTPUT_TOKENS_AFTER_TRUNCATION)

    def _call(self, messages: list[ChatMessage], max_output_tokens: int) -> Answer[ReportContent]:
        return self._c.llm.structured(
            ReportContent,
            messages,
            model=self._c.model,
            name="report",
            max_output_tokens=max_output_tokens,
            timeout_seconds=self._remaining_seconds() - self._c.reserve_seconds,
        )

    def _failed(self, code: str, *, detail: str | None = None, usage: TokenUsage | None = None) -> ReportOutcome:
        spent = self._spent + (usage or TokenUsage())
        interview_id = self._interview.interview_id
        kept = self._c.reports.fail(self._claim, code, detail=detail, usage=spent, cost_micro_usd=self._cost_of(spent))
        if not kept:
            logger.warning("report.claim_lost", extra={"interviewId": interview_id})
            return ReportOutcome.LOST_CLAIM
        self._c.interviews.set_report_pending(interview_id, pending=False)
        logger.error("report.failed", extra={"interviewId": interview_id, "code": code, "detail": detail})
        metrics.emit(metrics.REPORTS_FAILED, code=code)
        return ReportOutcome.FAILED

    def _cost_of(self, usage: TokenUsage) -> int:
        return cost_micro_usd(self._c.model, usage) or 0

    def _give_back(self, cause: TransientError, usage: TokenUsage | None) -> None:
        """Let the next delivery begin at once; where even that fails, the lease ends by itself."""
        spent = self._spent + (usage or TokenUsage())
        try:
            self._c.reports.release(self._claim, cause.code, usage=spent, cost_micro_usd=self._cost_of(spent))
        except AppError as exc:
            # error-ends-here: the caller raises the fault that led here.
            logger.warning("report.not_released", extra={"interviewId": self._interview.interview_id, "code": exc.code})


def _stored(answer: Answer[ReportContent], clock: Clock) -> StoredAnswer:
    return StoredAnswer(
        text=answer.text,
        model=answer.model,
        input_tokens=answer.usage.input_tokens,
        cached_input_tokens=answer.usage.cached_input_tokens,
        output_tokens=answer.usage.output_tokens,
        cost_micro_usd=answer.cost_micro_usd,
        created_at=clock(),
    )
