"""Reports of interviews."""

from typing import Annotated

from fastapi import APIRouter, Path

from api_services.http.auth import BEARER, Role, guarded
from api_services.http.dependencies import Deps
from api_services.http.problems import responses
from api_services.messages import Identifier
from api_services.reports import service
from api_services.reports.models import Report

router = APIRouter(tags=["reports"], route_class=guarded(Role.BOT, Role.ADMIN), dependencies=[BEARER])


@router.get(
    "/interviews/{interviewId}/report",
    responses=responses(404),
    response_model_exclude={"lease_expires_at", "failure_detail"},
)
def get_report(interview_id: Annotated[Identifier, Path(alias="interviewId")], deps: Deps) -> Report:
    """The report and how far it is: NOT_STARTED, PROCESSING, COMPLETED with its content, or FAILED with a code."""
    return service.get_report(deps.reports, deps.interviews, interview_id)
