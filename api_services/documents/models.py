"""What a document is, what its indexing can be seen to do, and what a search answers."""

import hashlib
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Final

from pydantic import Field, StringConstraints

from api_services.entities import Entity
from api_services.messages import Identifier

MAX_CONTENT_BYTES: Final = 5 * 1024 * 1024
"""Of one version. MongoDB takes 16 MB a document; the consumer's memory is measured at this size."""

MAX_TITLE_CHARS: Final = 300
MAX_QUERY_CHARS: Final = 500
MAX_PAGE: Final = 100

Title = Annotated[str, StringConstraints(min_length=1, max_length=MAX_TITLE_CHARS)]


class DocumentFormat(StrEnum):
    """How the content is structured; it decides where headings are seen."""

    MARKDOWN = "markdown"
    RST = "rst"
    TEXT = "text"


class DocumentState(StrEnum):
    """What the portal shows of the approved version, or `draft` where none was approved."""

    DRAFT = "draft"
    APPROVED = "approved"
    QUEUED = "queued"
    INDEXING = "indexing"
    INDEXED = "indexed"
    EMPTY = "empty"
    FAILED = "failed"
    WITHDRAWN = "withdrawn"


class IndexingFailure(Entity):
    """Why the last attempt ended badly: a stable code and a sentence."""

    code: str
    message: str


class Document(Entity):
    """A document without its content.

    `version` is the latest draft; `approved_version` is what search should hold. `revision` grows with every approval
    and withdrawal, so that of two orders the later one is known. `chunks_done` of `chunks_total` are paid for.
    """

    document_id: Identifier
    title: Title
    format: DocumentFormat
    version: Annotated[int, Field(ge=1)]
    content_hash: str
    content_bytes: int
    approved_version: int | None = None
    approved_content_hash: str | None = None
    revision: int = 0
    state: DocumentState = DocumentState.DRAFT
    chunks_total: int | None = None
    chunks_done: int | None = None
    failure: IndexingFailure | None = None
    created_at: datetime
    updated_at: datetime
    approved_at: datetime | None = None
    indexed_at: datetime | None = None

    @property
    def has_unapproved_changes(self) -> bool:
        """A draft is newer than what was approved last."""
        return self.approved_version != self.version


class DocumentContent(Entity):
    """One version's text as it was given, not yet decoded."""

    title: Title
    format: DocumentFormat
    content: bytes


class DocumentPage(Entity):
    """Documents in the order of their ids; `next_cursor` is None on the last page."""

    documents: tuple[Document, ...]
    next_cursor: str | None


class SearchHit(Entity):
    """One chunk that answers a query.

    `highlights` are half-open ranges of `snippet` in code points, ascending, none overlapping. `score` is the fused
    one: it orders hits of one query and means nothing beyond that.
    """

    document_id: str
    version: int
    document_title: str
    chunk_number: int
    heading: str
    title: str
    summary: str
    keywords: tuple[str, ...]
    snippet: str
    highlights: tuple[tuple[int, int], ...]
    score: float


class SearchPage(Entity):
    """One page of hits; `next_cursor` is None where nothing follows."""

    query: str
    hits: tuple[SearchHit, ...]
    next_cursor: str | None


def content_hash(title: str, document_format: DocumentFormat, content: bytes) -> str:
    """Equal for equal title, format and content; what decides whether an upsert makes a new version."""
    digest = hashlib.sha256()
    for part in (title.encode("utf-8", "surrogatepass"), document_format.encode(), content):
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.hexdigest()
