"""Reports: what the model fills in, and what is stored around it."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Final, Literal

from pydantic import Field

from api_services.entities import Entity
from api_services.llm.costs import TokenUsage
from api_services.llm.schemas import StructuredOutput

MAX_ATTEMPTS: Final = 3

REFUSED: Final = "refused"
TRUNCATED: Final = "truncated"
ATTEMPTS_EXHAUSTED: Final = "attempts_exhausted"
TRANSCRIPT_MISSING: Final = "transcript_missing"


class CompetencyScore(StructuredOutput):
    """One competency, scored from 1 (not shown) to 5 (outstanding), with the words it rests on."""

    competency: Literal["communication", "technical_depth", "problem_solving", "collaboration", "ownership"]
    score: Annotated[int, Field(ge=1, le=5)]
    evidence_quote: str
    rationale: str


class ReportContent(StructuredOutput):
    """The report itself, as the language model writes it."""

    summary: str
    competencies: list[CompetencyScore]
    strengths: list[str]
    concerns: list[str]
    overall_score: Annotated[int, Field(ge=0, le=100)]
    recommendation: Literal["strong_hire", "hire", "no_hire", "strong_no_hire"]


class ReportStatus(StrEnum):
    NOT_STARTED = "NOT_STARTED"
    PROCESSING = "PROCESSING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"


class ReportUsage(Entity):
    """Tokens of every call made for the report."""

    input_tokens: int = 0
    cached_input_tokens: int = 0
    output_tokens: int = 0

    @property
    def total_tokens(self) -> int:
        return self.input_tokens + self.output_tokens


class Report(Entity):
    """A report and how far it is. A transient fault leads back to NOT_STARTED; FAILED stays until it is reset."""

    interview_id: str
    organization_id: str
    status: ReportStatus
    attempt_count: int = 0
    lease_expires_at: datetime | None = None
    content: ReportContent | None = None
    failure_code: str | None = None
    failure_detail: str | None = None
    model: str | None = None
    usage: ReportUsage = ReportUsage()
    cost_micro_usd: int = 0
    created_at: datetime | None = None
    completed_at: datetime | None = None


class StoredAnswer(Entity):
    """The model's answer, kept before anything else is done with it, so that no delivery pays for it again."""

    text: str
    model: str
    input_tokens: int
    cached_input_tokens: int
    output_tokens: int
    cost_micro_usd: int | None
    created_at: datetime

    @property
    def usage(self) -> TokenUsage:
        return TokenUsage(self.input_tokens, self.cached_input_tokens, self.output_tokens)
