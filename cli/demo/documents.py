"""The document half of the demonstration: real documents from approval to search, and what an edit costs."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final

import httpx

from api_services.documents.models import Document, DocumentPage, DocumentState, SearchPage
from api_services.documents.repository import DocumentRepository
from api_services.documents.service import upsert_document
from api_services.errors import DependencyError
from api_services.mongo import connect
from api_services.settings import MongoSettings
from cli.demo.real_documents import RealDocument, real_documents
from local.running import RunningStage

QUERIES: Final = (
    "validate data with type hints",
    "retry a failed HTTP request",
    "property based testing",
    "open telemetry traces",
    "terminal progress bar",
)
MALFORMED_ID: Final = "zz-malformed"
EMPTY_ID: Final = "zz-empty"
HUGE_ID: Final = "zz-huge"
HUGE_BYTES: Final = 1_000_000
EDITED: Final = 10
MIN_DOCUMENTS: Final = 100
SENDERS: Final = 4
TIMEOUT_SECONDS: Final = 300.0
POLL_SECONDS: Final = 0.5

_OPEN: Final = (DocumentState.DRAFT, DocumentState.APPROVED, DocumentState.QUEUED, DocumentState.INDEXING)


@dataclass(frozen=True, slots=True)
class Calls:
    """What the language model answered."""

    enrichments: int
    embeddings: int

    def __sub__(self, earlier: "Calls") -> "Calls":
        return Calls(self.enrichments - earlier.enrichments, self.embeddings - earlier.embeddings)


@dataclass(slots=True)
class DocumentsPlayed:
    """What happened; `faults` names each promise that did not hold, and is empty when all did."""

    documents: int = 0
    states: Mapping[str, int] = field(default_factory=dict[str, int])
    chunks: int = 0
    huge_bytes: int = 0
    malformed_reason: str = ""
    index_seconds: float = 0.0
    index_calls: Calls | None = None
    searches: dict[str, SearchPage] = field(default_factory=dict[str, SearchPage])
    edited_documents: int = 0
    edited_chunks: int = 0
    edit_seconds: float = 0.0
    edit_calls: Calls | None = None
    faults: list[str] = field(default_factory=list[str])


class Portal:
    """The portal's side of the API, and the model's count of calls where the model is the local one."""

    def __init__(self, stage: RunningStage) -> None:
        headers = {"Authorization": f"Bearer {stage.keys['portal']}"}
        self._http = httpx.Client(base_url=stage.api_url, headers=headers, timeout=30.0)
        self._llm_url = None if stage.uses_real_openai else stage.llm_url

    def put(self, document: RealDocument) -> None:
        """A new draft version."""
        self._send(
            "PUT",
            f"/documents/{document.document_id}",
            {"title": document.title, "content": document.content, "format": document.format.value},
        )

    def approve(self, document_id: str) -> None:
        """Publish the latest version."""
        self._send("POST", f"/documents/{document_id}/approve", {})

    def documents(self) -> list[Document]:
        """All of them, page by page."""
        found: list[Document] = []
        cursor: str | None = None
        while True:
            params = {"limit": "100"} | ({"cursor": cursor} if cursor else {})
            page = DocumentPage.model_validate(self._send("GET", "/documents", params=params))
            found += page.documents
            cursor = page.next_cursor
            if cursor is None:
                return found

    def search(self, query: str, limit: int) -> SearchPage:
        """The best hits."""
        return SearchPage.model_validate(self._send("GET", "/search", params={"q": query, "limit": str(limit)}))

    def calls(self) -> Calls | None:
        """What the local model has answered so far; none for the real one, which doesn't say."""
        if self._llm_url is None:
            return None
        answered = httpx.get(f"{self._llm_url}/_control/calls", timeout=10.0).json()["answered"]
        return Calls(answered.get("responses", 0) + answered.get("chat", 0), answered.get("embeddings", 0))

    def close(self) -> None:
        """Let go of the connections."""
        self._http.close()

    def _send(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, params: Mapping[str, str] | None = None
    ) -> Any:
        response = self._http.request(method, path, json=body, params=params)
        if response.is_error:
            raise DependencyError(f"{method} {path} answered {response.status_code}: {response.text[:300]}")
        return response.json()


def play_documents(stage: RunningStage, *, note: Callable[[str], None]) -> DocumentsPlayed:
    """Approve a hundred and more real documents in one go, one malformed, one empty and one huge among them; search
    them; then edit ten. `note` is told what goes on. Raises `DependencyError` where the stage does not answer."""
    played = DocumentsPlayed()
    portal = Portal(stage)
    try:
        real = real_documents()
        _index(stage, portal, real, played, note)
        for query in QUERIES:
            note(f"searching: {query}")
            played.searches[query] = portal.search(query, 3)
            if not played.searches[query].hits:
                played.faults.append(f"a search for '{query}' found nothing")
        _edit(portal, real, played, note)
    finally:
        portal.close()
    return played


def _index(
    stage: RunningStage,
    portal: Portal,
    real: Sequence[RealDocument],
    played: DocumentsPlayed,
    note: Callable[[str], None],
) -> None:
    if len(real) < MIN_DOCUMENTS:
        played.faults.append(f"only {len(real)} installed packages have a description; {MIN_DOCUMENTS} are needed")
    huge = _huge(real)
    played.huge_bytes = len(huge.content.encode())
    empty = RealDocument(EMPTY_ID, "A page nobody has written yet", huge.format, "\n\n")
    before = portal.calls()
    started = time.monotonic()
    note(f"uploading and approving {len(real) + 3} documents")
    ids = [*(document.document_id for document in real), HUGE_ID, EMPTY_ID, MALFORMED_ID]
    with ThreadPoolExecutor(SENDERS) as pool:
        list(pool.map(portal.put, (*real, huge, empty)))
        _import_malformed(stage)
        list(pool.map(portal.approve, ids))
    ended = _await_documents(portal, ids, note)
    played.index_seconds = time.monotonic() - started
    played.index_calls = _since(portal, before)
    played.documents = len(ended)
    played.states = Counter(document.state.value for document in ended.values())
    played.chunks = sum(document.chunks_total or 0 for document in ended.values())
    failure = ended[MALFORMED_ID].failure
    played.malformed_reason = failure.message if failure else ""
    expected = {EMPTY_ID: DocumentState.EMPTY, MALFORMED_ID: DocumentState.FAILED}
    for document_id, document in ended.items():
        if document.state is not expected.get(document_id, DocumentState.INDEXED):
            played.faults.append(f"document {document_id} is {document.state.value}")


def _edit(portal: Portal, real: Sequence[RealDocument], played: DocumentsPlayed, note: Callable[[str], None]) -> None:
    """Ten of the longest, each by one sentence."""
    chosen = sorted(real, key=lambda document: len(document.content))[-EDITED:]
    before = portal.calls()
    started = time.monotonic()
    for document in chosen:
        portal.put(document.edited())
        portal.approve(document.document_id)
    ended = _await_documents(portal, [document.document_id for document in chosen], note)
    played.edit_seconds = time.monotonic() - started
    played.edit_calls = _since(portal, before)
    played.edited_documents = len(chosen)
    played.edited_chunks = sum(document.chunks_total or 0 for document in ended.values())
    if played.edit_calls is not None and played.edit_calls.enrichments > played.edited_chunks // 2:
        played.faults.append(
            f"ten edits cost {played.edit_calls.enrichments} enrichments of {played.edited_chunks} chunks"
        )


def _await_documents(portal: Portal, ids: Iterable[str], note: Callable[[str], None]) -> dict[str, Document]:
    wanted = set(ids)
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while True:
        found = {document.document_id: document for document in portal.documents() if document.document_id in wanted}
        states = Counter(document.state for document in found.values())
        if not any(states[state] for state in _OPEN):
            return found
        done = sum(document.chunks_done or 0 for document in found.values())
        note(", ".join(f"{count} {state.value}" for state, count in states.most_common()) + f"; {done} chunks")
        if time.monotonic() > deadline:
            left = sum(states[state] for state in _OPEN)
            raise DependencyError(f"{left} documents were not indexed after {TIMEOUT_SECONDS:.0f} s; see the logs")
        time.sleep(POLL_SECONDS)


def _since(portal: Portal, before: Calls | None) -> Calls | None:
    now = portal.calls()
    return None if now is None or before is None else now - before


def _huge(real: Sequence[RealDocument]) -> RealDocument:
    """Many of them in one, a megabyte: most of its passages are known by their content already."""
    parts: list[str] = []
    size = 0
    markdown = [document for document in real if document.format.value == "markdown"]
    while size < HUGE_BYTES and markdown:
        document = markdown[len(parts) % len(markdown)]
        parts.append(document.content.strip())
        size += len(parts[-1].encode()) + 2
    return RealDocument(
        HUGE_ID, "Everything in one", markdown[0].format if markdown else real[0].format, "\n\n".join(parts)
    )


def _import_malformed(stage: RunningStage) -> None:
    """A file in another encoding, as an import that doesn't pass the API would leave it."""
    from pydantic import SecretStr

    database = connect(MongoSettings(mongo_uri=SecretStr(stage.mongo_uri)), app_name="sophia-demo")
    try:
        upsert_document(
            DocumentRepository(database),
            document_id=MALFORMED_ID,
            title="A file from before UTF-8",
            content="Avalia\u00e7\u00e3o de candidatos\n".encode("latin-1"),
        )
    finally:
        database.client.close()
