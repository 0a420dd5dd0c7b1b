"""Errors as problem+json, request ids, bounds and the access log."""

import json
import logging
from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient

from api_services import errors
from api_services.errors import AppError, BusyError, DependencyError, QuotaExhaustedError
from api_services.http.problems import STATUS_BY_ERROR, status_of
from tests.unit.api_services.http.api import Api, as_role

BOT = as_role("bot")


def test_every_error_class_has_a_status_and_it_is_the_nearest_one() -> None:
    classes = [one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, AppError)]
    assert set(STATUS_BY_ERROR) <= set(classes)
    for one in classes:
        assert status_of(one("x")) in {404, 409, 422, 500, 503}
    assert status_of(DependencyError("x")) == 503


@pytest.mark.parametrize(
    ("error", "status"),
    [(BusyError("busy", retry_after_seconds=7.2), 503), (QuotaExhaustedError("out of money"), 503)],
)
def test_what_may_work_later_is_503_with_a_delay(client: TestClient, api: Api, error: AppError, status: int) -> None:
    api.interviews.fail_with = error
    answer = client.get("/interviews/x", headers=BOT)
    assert answer.status_code == status
    assert int(answer.headers["Retry-After"]) >= 1
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("error", [RuntimeError("host db-7 refused"), errors.ConfigurationError("host db-7 refused")])
def test_a_bug_is_a_500_that_leaks_nothing_and_is_logged(
    client: TestClient, api: Api, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    api.interviews.fail_with = error
    answer = client.get("/interviews/x", headers={**BOT, "X-Request-Id": "bug-1"})
    assert answer.status_code == 500
    assert "db-7" not in answer.text
    assert answer.json()["code"] == "internal"
    assert answer.json()["requestId"] == answer.headers["X-Request-Id"] == "bug-1"
    assert any(record.exc_info and "db-7" in str(record.exc_info[1]) for record in caplog.records)


def test_malformed_json_is_400_and_another_method_405(client: TestClient) -> None:
    malformed = client.post("/interviews", content=b"{", headers={**BOT, "Content-Type": "application/json"})
    assert malformed.status_code == 400
    assert malformed.json()["code"] == "malformed_json"
    assert client.delete("/interviews", headers=BOT).json()["code"] == "method_not_allowed"
    missing = client.get("/no-such-thing", headers=BOT)
    assert (missing.status_code, missing.json()["code"]) == (404, "not_found")


def test_a_given_request_id_comes_back_and_a_bad_one_is_replaced(client: TestClient) -> None:
    assert client.get("/healthz", headers={"X-Request-Id": "abc.DEF_1-2"}).headers["X-Request-Id"] == "abc.DEF_1-2"
    for bad in ("", "a b", "x" * 129, 'a"b', "-a"):
        answer = client.get("/healthz", headers={"X-Request-Id": bad})
        assert len(answer.headers["X-Request-Id"]) == 32, bad
    first, second = (client.get("/healthz").headers["X-Request-Id"] for _ in range(2))
    assert first != second


def test_a_body_over_the_bound_is_413_declared_or_not() -> None:
    api = Api(max_body_bytes=1000)

    def chunks() -> Iterator[bytes]:
        for _ in range(20):
            yield b"x" * 100

    with TestClient(api.app) as client:
        declared = client.post("/interviews", content=b"x" * 1001, headers=BOT)
        counted = client.post("/interviews", content=chunks(), headers={**BOT, "Content-Type": "application/json"})
        for answer in (declared, counted):
            assert answer.status_code == 413
            assert answer.json()["code"] == "body_too_large"
            assert answer.headers["X-Request-Id"]


def test_one_access_log_line_a_request_with_the_route_and_never_the_key(
    client: TestClient, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="api.access"):
        client.get("/interviews/secret-looking-id", headers=BOT)
        client.get("/healthz")
    (line,) = [record for record in caplog.records if record.name == "api.access"]
    assert line.__dict__["route"] == "/interviews/{interviewId}"
    assert line.__dict__["status"] == 404
    assert line.__dict__["role"] == "bot"
    assert "bot-key" not in json.dumps(line.__dict__, default=str)


def test_readiness_names_what_is_missing_and_health_does_not_care() -> None:
    def broken() -> None:
        raise DependencyError("host db-7 did not answer", code="database_timeout")

    with TestClient(Api(checks={"mongodb": broken, "ingest": lambda: None}).app) as client:
        ready = client.get("/readyz")
        assert ready.status_code == 503
        assert ready.json() == {"status": "unavailable", "checks": {"mongodb": "database_timeout", "ingest": "ok"}}
        assert client.get("/healthz").json() == {"status": "ok"}
    with TestClient(Api(checks={"mongodb": lambda: None}).app) as client:
        assert client.get("/readyz").json() == {"status": "ok", "checks": {"mongodb": "ok"}}


def test_answers_are_not_cached_or_sniffed(client: TestClient) -> None:
    headers = client.get("/healthz").headers
    assert headers["Cache-Control"] == "no-store"
    assert headers["X-Content-Type-Options"] == "nosniff"


def test_search_is_passed_on_within_its_bounds(client: TestClient, api: Api) -> None:
    portal = as_role("portal")
    found = client.get("/search?q=leave&document=a&document=b&limit=3", headers=portal)
    assert found.json()["hits"][0]["highlights"] == [[21, 26]]
    assert api.search.asked == [{"query": "leave", "document_ids": ("a", "b"), "limit": 3, "cursor": None}]
    for query in ("", "q=", "q=" + "x" * 501, "q=x&limit=0", "q=x&limit=101", "q=x&document=a%20b"):
        assert client.get(f"/search?{query}", headers=portal).status_code == 422, query


def test_the_openapi_document_names_the_problems_and_loads_nothing_from_elsewhere(client: TestClient) -> None:
    document = client.get("/openapi.json").json()
    assert "Problem" in document["components"]["schemas"]
    operation = document["paths"]["/interviews"]["post"]
    assert operation["responses"]["409"]["content"].keys() == {"application/problem+json"}
    assert operation["security"]
    assert not [path for path in document["paths"] if path.startswith("/portal")]
    assert client.get("/docs").status_code == 404
