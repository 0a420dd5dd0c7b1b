"""Interviews, their transcripts and their proctoring data as stored and as the API shows them."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator
from pydantic.alias_generators import to_camel

from api_services.entities import Credits, Entity

MAX_TURNS: Final = 5_000
MAX_TURN_CHARACTERS: Final = 20_000
MAX_TRANSCRIPT_CHARACTERS: Final = 1_000_000
"""About 150,000 words, ten hours of speech; far below the 16 MB a MongoDB document may have."""
MAX_PROCTORING_EVENTS: Final = 10_000
MAX_SECONDS: Final = 24 * 3600


class InterviewStatus(StrEnum):
    CREATED = "CREATED"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"

    @property
    def is_terminal(self) -> bool:
        return self is not InterviewStatus.CREATED


class InterviewCredits(Entity):
    """`consumed` is set by settlement, once."""

    required: Credits
    consumed: Credits | None = None


class Interview(Entity):
    """One interview. `settled_at` is set by the settlement that charged it, and never again."""

    interview_id: str
    organization_id: str
    status: InterviewStatus
    credits: InterviewCredits
    created_at: datetime
    ended_at: datetime | None = None
    failure_code: str | None = None
    settled_at: datetime | None = None
    retention_expires_at: datetime | None = None


class _Input(BaseModel):
    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
    )


Seconds = Annotated[float, Field(ge=0, le=MAX_SECONDS, allow_inf_nan=False)]


class Turn(_Input):
    """One utterance; `at_seconds` counts from the interview's start."""

    speaker: Literal["interviewer", "candidate"]
    text: Annotated[str, StringConstraints(min_length=1, max_length=MAX_TURN_CHARACTERS)]
    at_seconds: Seconds | None = None


class Transcript(_Input):
    """The whole conversation, at most 5,000 turns and 1,000,000 characters."""

    turns: Annotated[tuple[Turn, ...], Field(min_length=1, max_length=MAX_TURNS)]

    @model_validator(mode="after")
    def _is_bounded(self) -> "Transcript":
        if sum(len(turn.text) for turn in self.turns) > MAX_TRANSCRIPT_CHARACTERS:
            raise ValueError(f"a transcript has at most {MAX_TRANSCRIPT_CHARACTERS} characters")
        return self


class ProctoringEvent(_Input):
    """Something noticed while the interview ran: the tab lost focus, a second face, no face."""

    kind: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
    at_seconds: Seconds
    detail: Annotated[str, StringConstraints(max_length=500)] | None = None


class Proctoring(_Input):
    """All events of one interview, at most 10,000."""

    events: Annotated[tuple[ProctoringEvent, ...], Field(max_length=MAX_PROCTORING_EVENTS)]


def stored(model: _Input) -> dict[str, Any]:
    """The model as it is stored: camelCase, without what is not set."""
    return model.model_dump(by_alias=True, exclude_none=True)
