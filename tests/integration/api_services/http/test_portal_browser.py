"""The portal in a real browser: sign in, write, approve, watch the indexing, search. No request leaves this host."""

from collections.abc import Iterator
from datetime import UTC, datetime
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, Request, expect

from api_services.mongo import MongoDatabase
from tests.integration.api_services.http.browser import chromium
from tests.support.fakes import FakeQueueSender
from tests.unit.api_services.http.api import KEYS

pytestmark = pytest.mark.integration

TIMEOUT_MS = 15_000


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def trouble() -> list[str]:
    """What the browser complained of, and every address it asked beside the portal's own."""
    return []


@pytest.fixture
def page(browser: Browser, base_url: str, trouble: list[str]) -> Iterator[Page]:
    context = browser.new_context(base_url=base_url, viewport={"width": 1200, "height": 860})
    context.set_default_timeout(TIMEOUT_MS)
    page = context.new_page()

    def asked(request: Request) -> None:
        if urlsplit(request.url).netloc != urlsplit(base_url).netloc:
            trouble.append(request.url)

    page.on("request", asked)
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.on("console", lambda message: trouble.append(message.text) if message.type == "error" else None)
    yield page
    context.close()


def _sign_in(page: Page) -> None:
    page.goto("/portal")
    page.get_by_label("Portal key").fill(KEYS["portal"])
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Documents")).to_be_visible()


def _write(page: Page, document_id: str, title: str, text: str, button: str) -> None:
    page.goto("/portal/documents/new")
    page.get_by_label("Id", exact=True).fill(document_id)
    page.get_by_label("Title").fill(title)
    page.get_by_label("Text", exact=True).fill(text)
    page.get_by_role("button", name=button).click()
    expect(page.get_by_role("heading", name=title)).to_be_visible()


def _set_state(database: MongoDatabase, document_id: str, **fields: object) -> None:
    database["documents"].update_one({"_id": document_id}, {"$set": fields})


def test_a_document_is_written_approved_and_seen_being_indexed(
    page: Page, mongo_database: MongoDatabase, sender: FakeQueueSender, trouble: list[str]
) -> None:
    _sign_in(page)
    _write(page, "leave", "Leave policy", "# Leave\n\nAsk early.", "Save and approve")
    expect(page.locator("[data-badge]")).to_have_text("Queued")
    assert len(sender.messages("ingest")) == 1
    page.goto("/portal/documents")
    badge = page.locator('[data-document="leave"] [data-badge]')
    expect(badge).to_have_text("Queued")
    _set_state(mongo_database, "leave", state="indexing", chunksDone=3, chunksTotal=8)
    expect(badge).to_have_text("Indexing 3 of 8 chunks")
    expect(page.locator('[data-document="leave"] progress')).to_have_js_property("value", 3)
    _set_state(mongo_database, "leave", state="indexed", chunksDone=8, indexedAt=datetime.now(UTC))
    expect(badge).to_have_text("Indexed")
    expect(page.locator('[data-document="leave"] progress')).to_be_hidden()
    expect(page.locator('[data-document="leave"]')).to_have_attribute("data-live", "no")
    assert trouble == []


def test_a_failure_shows_its_reason_and_can_be_tried_again(
    page: Page, mongo_database: MongoDatabase, sender: FakeQueueSender, trouble: list[str]
) -> None:
    _sign_in(page)
    _write(page, "broken", "Broken", "text", "Save and approve")
    _set_state(mongo_database, "broken", state="failed", failure={"code": "x", "message": "No text in <it>."})
    expect(page.locator("[data-badge]")).to_have_text("Failed")
    expect(page.locator("[data-reason]")).to_have_text("No text in <it>.")
    page.reload()
    page.get_by_role("button", name="Try again").click()
    expect(page.locator("[data-badge]")).to_have_text("Queued")
    assert len(sender.messages("ingest")) == 2
    assert trouble == []


def test_a_draft_is_edited_approved_from_the_list_and_withdrawn(page: Page, trouble: list[str]) -> None:
    _sign_in(page)
    text = "\nfirst line kept empty\n  indented\n"
    _write(page, "notes", "Notes", text, "Save draft")
    expect(page.get_by_label("Text", exact=True)).to_have_value(text)
    page.get_by_label("Title").fill("Better notes")
    page.get_by_role("button", name="Save draft").click()
    expect(page.get_by_role("heading", name="Better notes")).to_be_visible()
    expect(page.get_by_label("Text", exact=True)).to_have_value(text)
    page.goto("/portal/documents")
    page.get_by_role("button", name="Approve Better notes").click()
    expect(page.locator("[data-badge]")).to_have_text("Queued")
    assert page.url.endswith("/portal/documents")
    page.get_by_role("link", name="Better notes").click()
    page.get_by_role("button", name="Withdraw from search").click()
    expect(page.locator("[data-badge]")).to_have_text("Withdrawn")
    assert trouble == []


def test_the_list_is_filtered_by_state_with_the_keyboard_alone(page: Page, trouble: list[str]) -> None:
    _sign_in(page)
    _write(page, "one", "One", "x", "Save draft")
    _write(page, "two", "Two", "x", "Save and approve")
    page.goto("/portal/documents")
    page.get_by_label("State").select_option("draft")
    expect(page.get_by_role("link", name="Two")).to_be_hidden()
    expect(page.get_by_role("link", name="One")).to_be_visible()
    page.get_by_role("link", name="Show all").click()
    expect(page.get_by_label("State")).to_have_value("")
    expect(page.get_by_role("link", name="Two")).to_be_visible()
    page.get_by_role("button", name="Filter").click()
    expect(page.get_by_role("link", name="Two")).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    assert trouble == []


def test_search_shows_hits_with_what_was_found_marked(page: Page, trouble: list[str]) -> None:
    _sign_in(page)
    page.get_by_role("link", name="Search").click()
    page.get_by_role("searchbox").fill("leave")
    page.keyboard.press("Enter")
    expect(page.locator("mark")).to_have_text("leave")
    assert trouble == []


def test_signing_out_closes_the_pages(page: Page, trouble: list[str]) -> None:
    _sign_in(page)
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("Portal key")).to_be_visible()
    page.goto("/portal/documents")
    page.get_by_label("Portal key").fill("wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("does not open the portal")
    assert [one for one in trouble if "401" not in one] == []
