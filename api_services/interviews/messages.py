"""What the API announces when an interview ends."""

from typing import Annotated, Literal

from pydantic import AwareDatetime, Field, StringConstraints

from api_services.messages import Identifier, Message

FailureCode = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,63}$"), Field(examples=["candidate_left"])]


class InterviewCompleted(Message):
    """An interview ran to its end; its credits are due."""

    type: Literal["interview.completed"] = "interview.completed"
    interview_id: Identifier
    organization_id: Identifier
    ended_at: AwareDatetime


class InterviewFailed(Message):
    """An interview broke off; `failure_code` decides whether credits are due."""

    type: Literal["interview.failed"] = "interview.failed"
    interview_id: Identifier
    organization_id: Identifier
    ended_at: AwareDatetime
    failure_code: FailureCode
