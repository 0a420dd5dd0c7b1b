"""What the bot may send is bounded."""

from typing import Any

import pytest
from pydantic import ValidationError

from api_services.interviews.models import MAX_TURNS, Interview, InterviewCredits, Proctoring, Transcript


def turn(**fields: Any) -> dict[str, Any]:
    return {"speaker": "candidate", "text": "Yes."} | fields


@pytest.mark.parametrize(
    "turns",
    [
        [],
        [turn()] * (MAX_TURNS + 1),
        [turn(text="")],
        [turn(text="x" * 20_001)],
        [turn(text="x" * 20_000)] * 51,
        [turn(speaker="somebody")],
        [turn(atSeconds=-1)],
        [turn(atSeconds=float("nan"))],
        [turn(atSeconds=float("inf"))],
        [turn(extra=1)],
        [turn(text="\ud83d")],
    ],
    ids=str,
)
def test_a_transcript_out_of_bounds_is_refused(turns: list[dict[str, Any]]) -> None:
    with pytest.raises(ValidationError):
        Transcript.model_validate({"turns": turns})


@pytest.mark.parametrize("kind", ["", "Tab Lost", "x" * 65])
def test_a_proctoring_event_has_a_kind_in_snake_case(kind: str) -> None:
    with pytest.raises(ValidationError):
        Proctoring.model_validate({"events": [{"kind": kind, "atSeconds": 1}]})


@pytest.mark.parametrize("amount", [4.5, 4.0, "4", True, -1, 1_000_000_001, None])
def test_credits_are_whole_numbers_within_bounds(amount: Any) -> None:
    with pytest.raises(ValidationError):
        InterviewCredits(required=amount)


def test_stored_names_are_camel_case() -> None:
    names = set(Interview.model_json_schema(by_alias=True)["properties"])
    assert {"interviewId", "organizationId", "settledAt", "retentionExpiresAt", "endedAt", "failureCode"} <= names
