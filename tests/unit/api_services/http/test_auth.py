"""Keys and roles: who may do what, and what the others are told."""

import hashlib
import json
from typing import Any

import pytest
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient

from api_services.errors import ConfigurationError
from api_services.http.auth import ApiKeys, Role
from api_services.http.portal.routes import PortalRoute
from tests.unit.api_services.http.api import KEYS, Api, as_role, secret

PUBLIC = {"/healthz", "/readyz"}
ROLES_BY_PREFIX = {
    "/interviews": {Role.BOT, Role.ADMIN},
    "/organizations": {Role.ADMIN},
    "/documents": {Role.PORTAL, Role.ADMIN},
    "/search": {Role.PORTAL, Role.ADMIN},
}


def _routes(api: Api) -> list[APIRoute]:
    found: list[APIRoute] = []
    pending: list[Any] = list(api.app.routes)
    while pending:
        route = pending.pop()
        if isinstance(route, APIRoute):
            found.append(route)
        else:
            pending.extend(getattr(getattr(route, "original_router", route), "routes", None) or [])
    return found


def test_every_route_is_guarded_by_the_roles_of_its_noun_or_is_meant_to_be_public(api: Api) -> None:
    routes = _routes(api)
    assert len(routes) > 20
    for route in routes:
        if isinstance(route, PortalRoute):
            continue
        allowed = getattr(route, "allowed_roles", None)
        if route.path in PUBLIC:
            assert allowed is None
            continue
        prefix = "/" + route.path.split("/")[1]
        assert allowed == ROLES_BY_PREFIX[prefix], route.path


@pytest.mark.parametrize(
    "header", [{}, {"Authorization": "Bearer wrong"}, {"Authorization": KEYS["bot"]}, {"Authorization": "Bearer "}]
)
def test_without_a_valid_key_the_answer_is_401_whatever_the_body(client: TestClient, header: dict[str, str]) -> None:
    answer = client.post("/interviews", content=b"{not json", headers=header)
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")
    assert answer.json()["code"] == "unauthenticated"


def test_a_key_of_another_role_is_403_and_says_which_it_needs(client: TestClient) -> None:
    answer = client.get("/organizations/org-a/credits", headers=as_role("bot"))
    assert answer.status_code == 403
    assert "admin" in answer.json()["detail"]
    assert client.get("/search?q=x", headers=as_role("bot")).status_code == 403
    assert client.get("/interviews/x", headers=as_role("portal")).status_code == 403
    assert client.get("/interviews/x", headers=as_role("admin")).status_code == 404


def test_two_keys_of_one_role_open_it_while_one_replaces_the_other() -> None:
    digests = [hashlib.sha256(key.encode()).hexdigest() for key in ("old", "new")]
    keys = ApiKeys.parse(json.dumps({"bot": digests}))
    assert keys.role_of("old") is keys.role_of("new") is Role.BOT
    assert keys.role_of("other") is None


@pytest.mark.parametrize(
    "value", ["", "{}", "[]", '{"bot": []}', '{"bot": "abc"}', '{"bot": ["abc"]}', '{"root": ["00"]}', '{"bot": [1]}']
)
def test_a_malformed_secret_is_refused_with_its_shape_and_without_its_value(value: str) -> None:
    with pytest.raises(ConfigurationError, match="sophia secrets set api-keys") as caught:
        ApiKeys.parse(value)
    assert "abc" not in str(caught.value)


def test_a_plain_key_in_the_secret_is_refused() -> None:
    with pytest.raises(ConfigurationError):
        ApiKeys.parse(json.dumps({"bot": ["my-plain-key"]}))


def test_derived_keys_differ_by_purpose_and_change_with_any_key() -> None:
    keys = ApiKeys.parse(secret())
    other = ApiKeys.parse(secret({**KEYS, "bot": "another"}))
    assert keys.derived_key("a") == ApiKeys.parse(secret()).derived_key("a")
    assert len({keys.derived_key("a"), keys.derived_key("b"), other.derived_key("a")}) == 3
