"""The portal without a browser: sessions, form tokens, and what a page may load."""

import re
from datetime import timedelta

import pytest
from fastapi.testclient import TestClient

from api_services.clock import utc_now
from api_services.http.auth import ApiKeys, Role
from api_services.http.portal.session import COOKIE, Sessions
from tests.support.fakes import FakeQueueSender
from tests.unit.api_services.http.api import KEYS, as_role, secret

pytestmark = pytest.mark.integration

FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def _login(client: TestClient, key: str = KEYS["portal"], after: str = "") -> str:
    answer = client.post("/portal/login", data={"key": key, "next": after}, follow_redirects=False)
    assert answer.status_code == 303
    return answer.headers["location"]


def _token(client: TestClient) -> str:
    found = re.search(r'name="token" value="([^"]+)"', client.get("/portal/documents/new").text)
    assert found is not None
    return found.group(1)


def _new(client: TestClient, token: str, **fields: str) -> int:
    data = {"token": token, "document_id": "handbook", "title": "T", "format": "markdown", "content": "x"} | fields
    return client.post("/portal/documents/new", data=data, follow_redirects=False).status_code


def test_pages_send_a_stranger_to_the_sign_in_page_and_back_after_it(client: TestClient) -> None:
    answer = client.get("/portal/documents/handbook?x=1", follow_redirects=False)
    assert answer.status_code == 303
    assert answer.headers["location"] == "/portal/login?next=/portal/documents/handbook%3Fx%3D1"
    assert client.get("/portal/states?id=a", follow_redirects=False).status_code == 401
    assert _login(client, after="/portal/search") == "/portal/search"


@pytest.mark.parametrize("target", ["https://evil.example/portal", "//evil.example", "/portal/../x", "/portalx", ""])
def test_nobody_is_sent_elsewhere_after_signing_in(client: TestClient, target: str) -> None:
    assert _login(client, after=target) == "/portal/documents"


def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites(client: TestClient) -> None:
    answer = client.post("/portal/login", data={"key": KEYS["portal"]}, follow_redirects=False)
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert "Path=/portal" in cookie
    assert KEYS["portal"] not in cookie


def test_only_portal_and_admin_keys_sign_in(client: TestClient) -> None:
    for key in ("wrong", "", KEYS["bot"]):
        answer = client.post("/portal/login", data={"key": key}, follow_redirects=False)
        assert answer.status_code == 401
        assert "set-cookie" not in answer.headers
    _login(client, KEYS["admin"])


def test_a_forged_expired_or_foreign_cookie_opens_nothing(client: TestClient) -> None:
    _login(client)
    good = client.cookies[COOKIE]
    now = utc_now()
    _, expired = Sessions(ApiKeys.parse(secret())).start(Role.PORTAL, now - timedelta(hours=9))
    _, foreign = Sessions(ApiKeys.parse(secret({**KEYS, "bot": "replaced"}))).start(Role.PORTAL, now)
    payload, signature = good.split(".")
    for bad in (
        expired,
        foreign,
        payload,
        f"{payload}.",
        f"{payload}x.{signature}",
        f".{signature}",
        "a.b",
        "x" * 5000,
    ):
        client.cookies.clear()
        answer = client.get("/portal/documents", headers={"Cookie": f"{COOKIE}={bad}"}, follow_redirects=False)
        assert answer.status_code == 303, bad
    answer = client.get("/portal/documents", headers={"Cookie": f"{COOKIE}={good}"}, follow_redirects=False)
    assert answer.status_code == 200


def test_a_form_without_this_sessions_token_or_from_another_origin_changes_nothing(
    client: TestClient, sender: FakeQueueSender
) -> None:
    _login(client)
    old = _token(client)
    assert _new(client, "") == 403
    assert _new(client, "wrong") == 403
    client.cookies.clear()
    _login(client)
    assert _new(client, old) == 403
    token = _token(client)
    for headers in ({"Origin": "https://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}):
        client.headers.update(headers)
        assert _new(client, token) == 403, headers
        for name in headers:
            del client.headers[name]
    assert client.get("/documents", headers=as_role("portal")).json()["documents"] == []
    client.headers.update({"Origin": "http://testserver", "Sec-Fetch-Site": "same-origin"})
    assert _new(client, token) == 303
    assert sender.sent == []


def test_text_is_shown_as_text_and_comes_back_unchanged(client: TestClient) -> None:
    _login(client)
    nasty = '\n\n<script>alert(1)</script> </textarea> & "quotes"\nline é\U0001f642'
    assert _new(client, _token(client), title="<b>T</b>", content=nasty.replace("\n", "\r\n")) == 303
    page = client.get("/portal/documents/handbook").text
    assert "<script>alert" not in page
    assert "<b>T</b>" not in page
    assert "&lt;/textarea&gt;" in page
    assert f'<textarea id="content" name="content" rows="22" spellcheck="true">\n{nasty[:2]}&lt;script' in page
    document = client.get("/documents/handbook", headers=as_role("portal")).json()
    assert document["contentBytes"] == len(nasty.encode())


def test_saving_over_someone_elses_newer_version_is_refused_and_keeps_the_text(client: TestClient) -> None:
    _login(client)
    token = _token(client)
    _new(client, token)
    client.put("/documents/handbook", json={"title": "T", "content": "theirs"}, headers=as_role("portal"))
    fields = {"token": token, "version": "1", "title": "T", "format": "markdown", "content": "mine, kept"}
    answer = client.post("/portal/documents/handbook", data=fields)
    assert answer.status_code == 409
    assert "mine, kept" in answer.text
    assert 'name="version" value="2"' in answer.text


def test_bad_input_is_said_on_the_page_that_holds_it(client: TestClient) -> None:
    _login(client)
    token = _token(client)
    for fields, status in (
        ({"document_id": "a b"}, 422),
        ({"title": ""}, 422),
        ({"format": "exe"}, 422),
        ({"document_id": "handbook"}, 303),
        ({"document_id": "handbook", "content": "again"}, 409),
    ):
        assert _new(client, token, **fields) == status, fields
    assert client.get("/portal/documents/none").status_code == 404
    assert client.get("/portal/documents/a%20b").status_code == 404
    assert client.post("/portal/documents/handbook/withdraw", data={"token": token}).status_code == 409
    assert client.post("/portal/documents/handbook/approve", data={"token": token}).status_code == 400
    json_post = client.post("/portal/documents/new", json={"token": token})
    assert json_post.status_code == 415


def test_pages_load_nothing_from_elsewhere_and_run_no_inline_script(client: TestClient) -> None:
    _login(client)
    _new(client, _token(client))
    for path in (
        "login",
        "documents",
        "documents/new",
        "documents/handbook",
        "search",
        "search?q=leave",
        "documents/no",
    ):
        client_page = client.get(f"/portal/{path}")
        policy = client_page.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        html = client_page.text
        assert not re.search(r"<script(?![^>]*\bsrc=)|\son\w+=|\sstyle=|<style", html), path
        for source in re.findall(r'(?:src|href)="([^"]+)"', html):
            assert source.startswith(("/portal", "#")), source
            if source.startswith("/portal/static"):
                asset = client.get(source)
                assert asset.status_code == 200
                assert "max-age" in asset.headers["Cache-Control"]


def test_search_marks_the_found_words_and_escapes_the_rest(client: TestClient) -> None:
    _login(client)
    page = client.get("/portal/search?q=leave").text
    assert "<mark>leave</mark>" in page
    assert "&lt;b&gt;early&lt;/b&gt;" in page


def test_a_document_a_browser_cannot_give_back_unchanged_is_not_offered_for_editing(
    client: TestClient, mongo_database: object
) -> None:
    from api_services.documents.repository import DocumentRepository
    from api_services.documents.service import upsert_document

    documents = DocumentRepository(mongo_database)  # pyright: ignore[reportArgumentType]
    upsert_document(documents, document_id="latin", title="Latin", content=b"caf\xe9")
    upsert_document(documents, document_id="windows", title="Windows", content="a\r\nb")
    _login(client)
    for name in ("latin", "windows"):
        page = client.get(f"/portal/documents/{name}").text
        assert "<textarea" not in page
        assert "Change it through the API" in page


def test_signing_out_needs_the_token_and_ends_the_session(client: TestClient) -> None:
    _login(client)
    token = _token(client)
    assert client.post("/portal/logout", data={"token": ""}, follow_redirects=False).status_code == 403
    client.post("/portal/logout", data={"token": token})
    assert client.get("/portal/documents", follow_redirects=False).status_code == 303
