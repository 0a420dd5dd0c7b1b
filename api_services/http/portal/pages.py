"""Rendering: templates, what a state looks like, and search hits cut into marked and unmarked pieces."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from api_services.documents.models import Document, DocumentState, SearchHit

FOLDER: Final = Path(__file__).parent
STATIC: Final = FOLDER / "static"

CONTENT_SECURITY_POLICY: Final = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)

IN_PROGRESS: Final = frozenset({DocumentState.APPROVED, DocumentState.QUEUED, DocumentState.INDEXING})

_LABELS: Final = {
    DocumentState.DRAFT: "Draft",
    DocumentState.APPROVED: "Approved",
    DocumentState.QUEUED: "Queued",
    DocumentState.INDEXING: "Indexing",
    DocumentState.INDEXED: "Indexed",
    DocumentState.EMPTY: "Indexed, no text",
    DocumentState.FAILED: "Failed",
    DocumentState.WITHDRAWN: "Withdrawn",
}


@dataclass(frozen=True, slots=True)
class StateView:
    """A document's state in words; `live` while it changes by itself."""

    state: str
    label: str
    live: bool
    done: int | None
    total: int | None
    reason: str | None


def state_view(document: Document) -> StateView:
    """What the list, the editor and the script show of `document`."""
    label = _LABELS[document.state]
    done, total = document.chunks_done, document.chunks_total
    indexing = document.state is DocumentState.INDEXING and total is not None
    if indexing:
        label = f"Indexing {done or 0} of {total} chunks"
    failed = document.state is DocumentState.FAILED and document.failure is not None
    return StateView(
        state=document.state.value,
        label=label,
        live=document.state in IN_PROGRESS,
        done=(done or 0) if indexing else None,
        total=total if indexing else None,
        reason=document.failure.message if failed and document.failure is not None else None,
    )


def pieces(hit: SearchHit) -> list[tuple[str, bool]]:
    """The snippet in order, each piece with whether it is a highlight."""
    found: list[tuple[str, bool]] = []
    position = 0
    for start, end in hit.highlights:
        found.append((hit.snippet[position:start], False))
        found.append((hit.snippet[start:end], True))
        position = end
    found.append((hit.snippet[position:], False))
    return [(text, marked) for text, marked in found if text]


def page(template: str, *, status: int = 200, **values: Any) -> HTMLResponse:
    """A page that no cache keeps and that loads nothing from elsewhere."""
    html = _templates().get_template(template).render(asset=asset, **values)
    return HTMLResponse(html, status_code=status, headers={"Content-Security-Policy": CONTENT_SECURITY_POLICY})


@cache
def asset(name: str) -> str:
    """The path of a static file; it changes with the content, so browsers may keep it."""
    return f"/portal/static/{name}?v={hashlib.sha256((STATIC / name).read_bytes()).hexdigest()[:12]}"


@cache
def _templates() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(FOLDER / "templates"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    filters: dict[str, Any] = {"state_view": state_view, "pieces": pieces, "bytes": _bytes}
    environment.filters.update(filters)
    return environment


def _bytes(count: int) -> str:
    if count < 1000:
        return f"{count} B"
    return f"{count / 1000:,.1f} KB" if count < 1_000_000 else f"{count / 1_000_000:,.1f} MB"


def states_json(documents: Sequence[Document]) -> dict[str, Any]:
    """What the script polls: document id to its state."""
    shown: dict[str, Any] = {}
    for document in documents:
        view = state_view(document)
        shown[document.document_id] = {
            "state": view.state,
            "label": view.label,
            "live": view.live,
            "done": view.done,
            "total": view.total,
            "reason": view.reason,
        }
    return shown
