"""Interviews as the bot drives them, and their reports."""

from typing import Annotated

from fastapi import APIRouter, Path, Response
from pydantic import Field

from api_services.entities import Credits
from api_services.http.auth import BEARER, Role, guarded
from api_services.http.dependencies import Deps
from api_services.http.problems import responses
from api_services.http.schemas import Input
from api_services.interviews import service
from api_services.interviews.messages import FailureCode
from api_services.interviews.models import Interview, Proctoring, Transcript
from api_services.messages import Identifier

InterviewId = Annotated[Identifier, Path(alias="interviewId")]

router = APIRouter(
    prefix="/interviews", tags=["interviews"], route_class=guarded(Role.BOT, Role.ADMIN), dependencies=[BEARER]
)


class NewInterview(Input):
    """With an `interviewId` of the caller's own, the same request again changes nothing."""

    organization_id: Identifier
    credits_required: Credits
    interview_id: Identifier | None = None


class Failure(Input):
    """Why the interview broke off, as lower snake case: `candidate_left`."""

    failure_code: Annotated[FailureCode, Field(examples=["candidate_left"])]


@router.post("", status_code=201, responses=responses(409, 413))
def create_interview(new: NewInterview, response: Response, deps: Deps) -> Interview:
    """Create an interview that will cost `creditsRequired` when it completes."""
    interview = service.create_interview(
        deps.interviews,
        organization_id=new.organization_id,
        credits_required=new.credits_required,
        interview_id=new.interview_id,
        now=deps.clock(),
    )
    response.headers["Location"] = f"/interviews/{interview.interview_id}"
    return interview


@router.get("/{interviewId}", responses=responses(404))
def get_interview(interview_id: InterviewId, deps: Deps) -> Interview:
    """The interview with its status and, once settled, its credits consumed."""
    return service.get_interview(deps.interviews, interview_id)


@router.put("/{interviewId}/transcript", responses=responses(404, 409, 413))
def record_transcript(interview_id: InterviewId, transcript: Transcript, deps: Deps) -> Interview:
    """Keep the whole transcript, in place of an earlier one; refused with 409 once the interview has ended."""
    return service.record_transcript(deps.interviews, interview_id, transcript)


@router.put("/{interviewId}/proctoring", responses=responses(404, 409, 413))
def record_proctoring(interview_id: InterviewId, proctoring: Proctoring, deps: Deps) -> Interview:
    """Keep the proctoring data, in place of earlier ones; refused with 409 once the interview has ended."""
    return service.record_proctoring(deps.interviews, interview_id, proctoring)


@router.post("/{interviewId}/complete", responses=responses(404, 409))
def complete_interview(interview_id: InterviewId, deps: Deps) -> Interview:
    """End the interview; its settlement and report follow. Completing again is no error and repairs a lost message."""
    return service.complete_interview(deps.interviews, deps.sender, interview_id, now=deps.clock())


@router.post("/{interviewId}/fail", responses=responses(404, 409, 413))
def fail_interview(interview_id: InterviewId, failure: Failure, deps: Deps) -> Interview:
    """End the interview as failed; its settlement follows. Failing again is no error and keeps the first code."""
    return service.fail_interview(
        deps.interviews, deps.sender, interview_id, failure_code=failure.failure_code, now=deps.clock()
    )
