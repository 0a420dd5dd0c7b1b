"""Interview routes: what the bot sends, what it gets back, what goes to the queue."""

from typing import Any

import pytest
from fastapi.testclient import TestClient

from api_services.errors import DependencyError
from api_services.interviews.messages import InterviewCompleted, InterviewFailed
from api_services.reports.models import Report, ReportStatus
from tests.unit.api_services.http.api import NOW, Api, as_role

BOT = as_role("bot")
TRANSCRIPT = {"turns": [{"speaker": "candidate", "text": "I moved it in small steps.", "atSeconds": 4.5}]}


def _create(client: TestClient, interview_id: str = "int-1", **changes: Any) -> Any:
    body = {"interviewId": interview_id, "organizationId": "org-a", "creditsRequired": 10} | changes
    return client.post("/interviews", json=body, headers=BOT)


def test_an_interview_is_created_and_read_back(client: TestClient) -> None:
    created = _create(client)
    assert created.status_code == 201
    assert created.headers["Location"] == "/interviews/int-1"
    assert created.json()["credits"] == {"required": 10, "consumed": None}
    read = client.get("/interviews/int-1", headers=BOT)
    assert read.json() == created.json()
    assert read.json()["status"] == "CREATED"


def test_creating_again_changes_nothing_and_other_terms_conflict(client: TestClient) -> None:
    first = _create(client).json()
    assert _create(client).json() == first
    conflict = _create(client, creditsRequired=11)
    assert conflict.status_code == 409
    assert conflict.json()["code"] == "conflict"


@pytest.mark.parametrize(
    "changes",
    [
        {"creditsRequired": 1.5},
        {"creditsRequired": "10"},
        {"creditsRequired": -1},
        {"creditsRequired": True},
        {"organizationId": "a b"},
        {"organizationId": ""},
        {"unknown": 1},
        {"credits_required": 10},
    ],
)
def test_bad_terms_are_refused_with_the_field_and_without_the_value(client: TestClient, changes: Any) -> None:
    refused = _create(client, **changes)
    assert refused.status_code == 422
    problem = refused.json()
    assert problem["code"] == "invalid_request"
    assert [fault["field"] for fault in problem["errors"]] == list(changes)
    assert "a b" not in refused.text


def test_completing_sends_one_message_with_the_request_id(client: TestClient, api: Api) -> None:
    _create(client)
    client.put("/interviews/int-1/transcript", json=TRANSCRIPT, headers=BOT)
    done = client.post("/interviews/int-1/complete", headers={**BOT, "X-Request-Id": "call-42"})
    assert done.status_code == 200
    assert done.json()["status"] == "COMPLETED"
    (sent,) = api.sender.sent
    assert sent.message == InterviewCompleted(interview_id="int-1", organization_id="org-a", ended_at=NOW)
    assert sent.request_id == "call-42"


def test_completing_twice_is_no_error_and_repairs_a_send_that_failed(client: TestClient, api: Api) -> None:
    _create(client)
    api.sender.fail_with = DependencyError("The queue did not answer")
    lost = client.post("/interviews/int-1/complete", headers=BOT)
    assert lost.status_code == 503
    assert lost.headers["Retry-After"]
    assert api.interviews.interviews["int-1"].status == "COMPLETED"
    api.sender.fail_with = None
    assert client.post("/interviews/int-1/complete", headers=BOT).status_code == 200
    assert len(api.sender.messages("interview-completed")) == 1


def test_failing_sends_the_code_and_a_completed_interview_cannot_fail(client: TestClient, api: Api) -> None:
    _create(client)
    failed = client.post("/interviews/int-1/fail", json={"failureCode": "candidate_left"}, headers=BOT)
    assert failed.json()["status"] == "FAILED"
    (message,) = api.sender.messages("interview-completed")
    assert isinstance(message, InterviewFailed)
    assert message.failure_code == "candidate_left"
    conflict = client.post("/interviews/int-1/complete", headers=BOT)
    assert conflict.status_code == 409
    assert conflict.json()["code"] == "interview_has_ended"


def test_a_transcript_is_refused_after_the_end_unless_it_is_the_same(client: TestClient) -> None:
    _create(client)
    assert client.put("/interviews/int-1/transcript", json=TRANSCRIPT, headers=BOT).status_code == 200
    client.post("/interviews/int-1/complete", headers=BOT)
    assert client.put("/interviews/int-1/transcript", json=TRANSCRIPT, headers=BOT).status_code == 200
    other = {"turns": [{"speaker": "candidate", "text": "Something else."}]}
    assert client.put("/interviews/int-1/transcript", json=other, headers=BOT).status_code == 409


def test_proctoring_data_is_kept(client: TestClient, api: Api) -> None:
    _create(client)
    events = {"events": [{"kind": "tab_hidden", "atSeconds": 61, "detail": "12 s"}]}
    assert client.put("/interviews/int-1/proctoring", json=events, headers=BOT).status_code == 200
    assert api.interviews.proctorings["int-1"].events[0].kind == "tab_hidden"


def test_what_does_not_exist_is_404_in_every_route(client: TestClient) -> None:
    calls: tuple[tuple[str, str, Any], ...] = (
        ("GET", "/interviews/none", None),
        ("GET", "/interviews/none/report", None),
        ("PUT", "/interviews/none/transcript", TRANSCRIPT),
        ("PUT", "/interviews/none/proctoring", {"events": []}),
        ("POST", "/interviews/none/complete", None),
        ("POST", "/interviews/none/fail", {"failureCode": "x"}),
    )
    for method, path, body in calls:
        answer = client.request(method, path, json=body, headers=BOT)
        assert answer.status_code == 404, path
        assert answer.json()["code"] == "not_found"


def test_a_report_shows_its_status_and_keeps_what_the_model_said_in_refusing_to_itself(
    client: TestClient, api: Api
) -> None:
    _create(client)
    assert client.get("/interviews/int-1/report", headers=BOT).json()["status"] == "NOT_STARTED"
    api.reports.reports["int-1"] = Report(
        interview_id="int-1",
        organization_id="org-a",
        status=ReportStatus.FAILED,
        failure_code="refused",
        failure_detail="I can't help with that.",
    )
    shown = client.get("/interviews/int-1/report", headers=BOT)
    assert shown.json()["failureCode"] == "refused"
    assert "can't help" not in shown.text
