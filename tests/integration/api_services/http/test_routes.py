"""Credits, interviews and documents over HTTP, on a real MongoDB."""

from typing import Any

import pytest
from fastapi.testclient import TestClient

from api_services.documents.messages import IngestDocument
from api_services.errors import DependencyError
from tests.support.fakes import FakeQueueSender
from tests.unit.api_services.http.api import as_role

pytestmark = pytest.mark.integration

ADMIN = as_role("admin")
BOT = as_role("bot")
PORTAL = as_role("portal")


def _grant(client: TestClient, key: str, body: dict[str, Any]) -> Any:
    return client.post("/organizations/org-a/credits/lots", json=body, headers={**ADMIN, "Idempotency-Key": key})


def test_a_grant_is_stored_once_however_often_it_is_sent(client: TestClient) -> None:
    body = {"amount": 50, "expiresAt": "2099-01-01T00:00:00Z"}
    first = _grant(client, "invoice-1", body)
    assert first.status_code == 201
    again = _grant(client, "invoice-1", body)
    assert again.status_code == 200
    assert again.json() == first.json()
    assert _grant(client, "invoice-1", {**body, "amount": 51}).status_code == 409
    assert _grant(client, "invoice-2", {"amount": 7}).status_code == 201
    balance = client.get("/organizations/org-a/credits", headers=ADMIN).json()
    assert (balance["available"], balance["overdraft"]) == (57, 0)
    lots = client.get("/organizations/org-a/credits/lots?limit=1", headers=ADMIN).json()
    assert len(lots["items"]) == 1
    rest = client.get(f"/organizations/org-a/credits/lots?cursor={lots['nextCursor']}", headers=ADMIN).json()
    assert [lot["amount"] for lot in (*lots["items"], *rest["items"])] == [7, 50]
    ledger = client.get("/organizations/org-a/credits/ledger", headers=ADMIN).json()
    assert sum(entry["amount"] for entry in ledger["items"]) == 57


@pytest.mark.parametrize(
    "body",
    [
        {"amount": 0},
        {"amount": 1.5},
        {"amount": 10**10},
        {"amount": 5, "expiresAt": "2001-01-01T00:00:00Z"},
        {"amount": 5, "expiresAt": "2099-01-01T00:00:00"},
        {},
    ],
)
def test_a_grant_that_makes_no_sense_is_422(client: TestClient, body: dict[str, Any]) -> None:
    assert _grant(client, "k", body).status_code == 422


def test_a_grant_without_its_key_is_422(client: TestClient) -> None:
    answer = client.post("/organizations/org-a/credits/lots", json={"amount": 5}, headers=ADMIN)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == "idempotency-key"


def test_an_interview_lives_in_mongodb_from_creation_to_completion(client: TestClient, sender: FakeQueueSender) -> None:
    created = client.post("/interviews", json={"organizationId": "org-a", "creditsRequired": 10}, headers=BOT).json()
    path = f"/interviews/{created['interviewId']}"
    turns = [{"speaker": "candidate", "text": "We measured first, \u00e9\U0001f642."}]
    assert client.put(f"{path}/transcript", json={"turns": turns}, headers=BOT).status_code == 200
    completed = client.post(f"{path}/complete", headers=BOT).json()
    assert client.post(f"{path}/complete", headers=BOT).json() == completed
    assert client.get(path, headers=BOT).json() == completed
    assert len({message.body() for message in sender.messages("interview-completed")}) == 1
    assert client.get(f"{path}/report", headers=BOT).json()["status"] == "NOT_STARTED"


def test_a_document_goes_from_draft_to_the_queue_and_out_again(client: TestClient, sender: FakeQueueSender) -> None:
    body = {"title": "Handbook", "content": "# Leave\n\nAsk early.", "format": "markdown"}
    draft = client.put("/documents/handbook", json=body, headers=PORTAL).json()
    assert (draft["state"], draft["version"]) == ("draft", 1)
    assert client.put("/documents/handbook", json=body, headers=PORTAL).json() == draft
    approved = client.post("/documents/handbook/approve", json={"version": 1}, headers=PORTAL).json()
    assert approved["state"] == "queued"
    assert client.post("/documents/handbook/approve", headers=PORTAL).json()["state"] == "queued"
    assert sender.messages("ingest") == [IngestDocument(document_id="handbook", version=1)]
    changed = client.put("/documents/handbook", json={**body, "content": "New."}, headers=PORTAL).json()
    assert changed["version"] == 2
    assert client.post("/documents/handbook/approve", json={"version": 1}, headers=PORTAL).status_code == 409
    assert client.post("/documents/handbook/withdraw", headers=PORTAL).json()["state"] == "withdrawn"
    listed = client.get("/documents", headers=PORTAL).json()
    assert [document["documentId"] for document in listed["documents"]] == ["handbook"]
    assert client.get("/documents?state=indexed", headers=PORTAL).json()["documents"] == []


def test_an_approval_whose_message_is_lost_stands_and_the_next_call_repairs_it(
    client: TestClient, sender: FakeQueueSender
) -> None:
    client.put("/documents/d", json={"title": "T", "content": "x"}, headers=PORTAL)
    sender.fail_with = DependencyError("The queue did not answer")
    assert client.post("/documents/d/approve", headers=PORTAL).json()["state"] == "approved"
    sender.fail_with = None
    assert client.post("/documents/d/approve", headers=PORTAL).json()["state"] == "queued"
    assert len(sender.messages("ingest")) == 1


def test_a_document_over_its_bound_is_refused(client: TestClient) -> None:
    exact = client.put("/documents/d", json={"title": "T", "content": "x" * 5 * 1024 * 1024}, headers=PORTAL)
    assert exact.status_code == 200
    over = client.put("/documents/d", json={"title": "T", "content": "x" * (5 * 1024 * 1024 + 1)}, headers=PORTAL)
    assert over.status_code == 422
    assert "xxxx" not in over.text
    wide = client.put("/documents/d", json={"title": "T", "content": "é" * 3 * 1024 * 1024}, headers=PORTAL)
    assert wide.status_code in {413, 422}
