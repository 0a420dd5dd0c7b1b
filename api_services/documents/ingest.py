"""Bringing the index in line with one document: what the ingest queue's consumer does with a message."""

import logging
import math
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from api_services.clock import utc_now
from api_services.documents.calls import OutOfTimeError
from api_services.documents.chunking import chunk
from api_services.documents.index.base import IndexEntry, SearchIndex
from api_services.documents.messages import IngestDocument
from api_services.documents.models import Document, DocumentState
from api_services.documents.normalise import normalise
from api_services.documents.pipeline import ChunkCompleter
from api_services.documents.repository import DocumentRepository
from api_services.errors import AppError, BusyError, PermanentError
from api_services.queues import INGEST
from api_services.sqs import DELAY_MAX_SECONDS, QueueSender

LEASE_SECONDS: Final = 60.0
"""Renewed every second while the work goes on: a consumer that was killed is waited for no longer than this."""

RESERVE_SECONDS: Final = 60.0
"""Kept for the write; also bounds calls under way when the time is up."""

INDEX_WAIT_SECONDS: Final = 20.0
MAX_CONTINUATIONS: Final = 15
"""Lambda stops a function that feeds its own queue after 16 rounds (Lambda guide, invocation-recursion)."""

logger = logging.getLogger(__name__)


class IngestOutcome(StrEnum):
    """How a message ended that may be deleted."""

    INDEXED = "indexed"
    EMPTY = "empty"
    REMOVED = "removed"
    CURRENT = "current"
    STALE = "stale"
    CONTINUED = "continued"
    POSTPONED = "postponed"


class SupersededError(Exception):
    """A later approval or withdrawal, or another holder of the lease, came between."""


@dataclass(frozen=True, slots=True)
class IngestTools:
    """What the consumer works with."""

    documents: DocumentRepository
    completer: ChunkCompleter
    index: SearchIndex
    sender: QueueSender
    lease_seconds: float = LEASE_SECONDS
    reserve_seconds: float = RESERVE_SECONDS


def ingest_document(
    tools: IngestTools, message: IngestDocument, *, remaining_seconds: Callable[[], float], last_receive: bool = False
) -> IngestOutcome:
    """Index the approved version, or remove what was withdrawn; doing it again changes nothing and calls nothing.

    Permanent errors mark the document failed with their reason, others only where this is the message's last receive.
    Out of time, the work done is kept and a fresh message sent for the rest.
    """
    document = tools.documents.get(message.document_id)
    if document.approved_version != message.version:
        # Each approval and withdrawal has a message of its own; this one was overtaken.
        return IngestOutcome.STALE
    entry = tools.index.entry(document.document_id)
    if document.state is DocumentState.WITHDRAWN:
        return _remove(tools, document, entry, remaining_seconds)
    if entry is not None and not entry.removed and entry.revision >= document.revision:
        if document.state is not _state_of(entry.chunks):
            _mark_indexed(tools, document, entry.chunks)
        return IngestOutcome.CURRENT
    owner = secrets.token_hex(8)
    held_seconds = tools.documents.claim(document, owner, tools.lease_seconds)
    if held_seconds is not None:
        return _postpone(tools, message, held_seconds)
    try:
        return _index(tools, document, owner, remaining_seconds)
    except SupersededError:
        tools.documents.release(document.document_id, owner)
        return IngestOutcome.STALE
    except OutOfTimeError as exc:
        tools.documents.release(document.document_id, owner)
        if message.continuation >= MAX_CONTINUATIONS:
            error = BusyError("the document was not finished in 16 rounds", code="out_of_rounds")
            _fail(tools, document, error, permanent=last_receive)
            raise error from exc
        _send_on(tools, message, exc.wait_seconds)
        return IngestOutcome.CONTINUED
    except Exception as exc:
        tools.documents.release(document.document_id, owner)
        _fail(tools, document, exc, permanent=last_receive)
        raise


def _index(tools: IngestTools, document: Document, owner: str, remaining_seconds: Callable[[], float]) -> IngestOutcome:
    content = tools.documents.content(document.document_id, document.approved_content_hash or "")
    text = normalise(content.content)
    chunks = chunk(text.text, content.format)
    logger.info(
        "documents.chunked",
        extra={
            "documentId": document.document_id,
            "version": document.approved_version,
            "chunks": len(chunks),
            "surrogatesReplaced": text.surrogates_replaced,
            "controlsReplaced": text.controls_replaced,
        },
    )

    def progress(done: int, total: int) -> None:
        if not tools.documents.renew(document, owner, tools.lease_seconds, done=done, total=total):
            raise SupersededError

    progress(0, len(chunks))
    deadline = time.monotonic() + remaining_seconds() - tools.reserve_seconds
    ready = tools.completer.complete(chunks, deadline=deadline, progress=progress) if chunks else []
    progress(len(chunks), len(chunks))
    replaced = tools.index.replace(
        document_id=document.document_id,
        title=content.title,
        version=document.approved_version or 0,
        revision=document.revision,
        chunks=ready,
        wait_seconds=_index_wait(remaining_seconds),
    )
    if not replaced:
        raise SupersededError
    _mark_indexed(tools, document, len(chunks))
    return IngestOutcome.INDEXED if chunks else IngestOutcome.EMPTY


def _remove(
    tools: IngestTools, document: Document, entry: IndexEntry | None, remaining_seconds: Callable[[], float]
) -> IngestOutcome:
    if entry is not None and entry.removed and entry.revision >= document.revision:
        return IngestOutcome.CURRENT
    removed = tools.index.remove(
        document_id=document.document_id,
        version=document.approved_version or 0,
        revision=document.revision,
        wait_seconds=_index_wait(remaining_seconds),
    )
    return IngestOutcome.REMOVED if removed else IngestOutcome.STALE


def _index_wait(remaining_seconds: Callable[[], float]) -> float:
    return max(0.0, min(INDEX_WAIT_SECONDS, remaining_seconds() / 2))


def _state_of(chunks: int) -> DocumentState:
    return DocumentState.INDEXED if chunks else DocumentState.EMPTY


def _mark_indexed(tools: IngestTools, document: Document, chunks: int) -> None:
    tools.documents.mark(
        document,
        _state_of(chunks),
        indexedAt=utc_now(),
        chunksDone=chunks,
        chunksTotal=chunks,
        failure=None,
        lease=None,
    )


def _fail(tools: IngestTools, document: Document, error: Exception, *, permanent: bool) -> None:
    """Say why; a document that will be tried again is queued, one that won't has failed."""
    known = isinstance(error, AppError)
    failed = permanent or isinstance(error, PermanentError)
    failure = {
        "code": error.code if known else "unexpected",
        "message": error.message if known else "indexing failed in a way that is not known; see the logs",
    }
    state = DocumentState.FAILED if failed else DocumentState.QUEUED
    tools.documents.mark(document, state, failure=failure)


def _postpone(tools: IngestTools, message: IngestDocument, held_seconds: float) -> IngestOutcome:
    """Someone else is at it: come back when its lease has ended, without using up receives."""
    if message.continuation >= MAX_CONTINUATIONS:
        raise BusyError("another consumer indexes the document", retry_after_seconds=max(1.0, held_seconds))
    _send_on(tools, message, held_seconds)
    return IngestOutcome.POSTPONED


def _send_on(tools: IngestTools, message: IngestDocument, wait_seconds: float) -> None:
    following = message.model_copy(update={"continuation": message.continuation + 1})
    tools.sender.send(INGEST, following, delay_seconds=min(DELAY_MAX_SECONDS, math.ceil(wait_seconds)))
