"""What the API does with documents: keep versions, approve one for search, withdraw it."""

import logging
from typing import Final

from pydantic import TypeAdapter, ValidationError

from api_services.documents.messages import IngestDocument
from api_services.documents.models import (
    MAX_CONTENT_BYTES,
    MAX_PAGE,
    MAX_TITLE_CHARS,
    Document,
    DocumentContent,
    DocumentFormat,
    DocumentPage,
    DocumentState,
    content_hash,
)
from api_services.documents.normalise import normalise_text
from api_services.documents.repository import DocumentRepository
from api_services.errors import ConflictError, InvalidInputError, InvalidStateError, TransientError
from api_services.messages import Identifier
from api_services.metrics import emit
from api_services.queues import INGEST
from api_services.sqs import QueueSender

logger = logging.getLogger(__name__)

INGEST_ENQUEUE_FAILED: Final = "IngestEnqueueFailed"

_IDENTIFIER: TypeAdapter[str] = TypeAdapter(Identifier)


def upsert_document(
    documents: DocumentRepository,
    *,
    document_id: str,
    title: str,
    content: str | bytes,
    document_format: DocumentFormat = DocumentFormat.MARKDOWN,
) -> Document:
    """Keep `content` as a new draft version; the same title, format and content again make none.

    Bytes are kept as given and decoded when they are indexed. Raises `InvalidInputError` (over 5 MiB, bad id or title).
    """
    _check_id(document_id)
    clean_title = normalise_text(title).text.strip()
    if not 0 < len(clean_title) <= MAX_TITLE_CHARS:
        raise InvalidInputError(f"a title has 1 to {MAX_TITLE_CHARS} characters, this one {len(clean_title)}")
    raw = content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass")
    if len(raw) > MAX_CONTENT_BYTES:
        raise InvalidInputError(
            f"a document has at most {MAX_CONTENT_BYTES:,} bytes, this one {len(raw):,}; split it",
            code="document_too_large",
            document_id=document_id,
        )
    return documents.upsert(
        document_id,
        title=clean_title,
        document_format=document_format,
        content=raw,
        content_hash=content_hash(clean_title, document_format, raw),
    )


def approve_document(
    documents: DocumentRepository, sender: QueueSender, *, document_id: str, version: int | None = None
) -> Document:
    """Approve the latest version (`version`, where given, must be it) and publish it at once.

    Approving what is on its way or indexed changes nothing; approving what failed tries again. An enqueue that fails
    leaves the state `approved`; the next call or the reconciler repairs it. Raises `NotFoundError`, `ConflictError`.
    """
    _check_id(document_id)
    current = documents.get(document_id)
    wanted = current.version if version is None else version
    approved = documents.approve(document_id, wanted)
    if approved is None:
        approved = documents.get(document_id)
        if approved.version != wanted:
            raise ConflictError(
                f"version {wanted} is not the latest of '{document_id}'; approve version {approved.version}",
                document_id=document_id,
            )
    if approved.state is not DocumentState.APPROVED:
        return approved
    return publish(documents, sender, approved)


def withdraw_document(documents: DocumentRepository, sender: QueueSender, *, document_id: str) -> Document:
    """Take the document out of search; doing it again changes nothing but repeats the order.

    Raises `NotFoundError`, and `InvalidStateError` where nothing was ever approved.
    """
    _check_id(document_id)
    withdrawn = documents.withdraw(document_id) or documents.get(document_id)
    if withdrawn.state is not DocumentState.WITHDRAWN:
        raise InvalidStateError(f"'{document_id}' was never approved, so there is nothing to withdraw")
    return publish(documents, sender, withdrawn)


def publish(documents: DocumentRepository, sender: QueueSender, document: Document) -> Document:
    """Order the index brought in line with `document`; a failed send is logged, counted and left to be repaired."""
    if document.approved_version is None:
        raise InvalidStateError(f"'{document.document_id}' was never approved", document_id=document.document_id)
    try:
        sender.send(INGEST, IngestDocument(document_id=document.document_id, version=document.approved_version))
    except TransientError:
        # error-ends-here: the version is approved; the reconciler enqueues what is not indexed.
        logger.warning("documents.enqueue_failed", exc_info=True, extra={"documentId": document.document_id})
        emit(INGEST_ENQUEUE_FAILED)
        return document
    if document.state is not DocumentState.WITHDRAWN:
        documents.mark(document, DocumentState.QUEUED, only_from=(DocumentState.APPROVED,))
    return documents.get(document.document_id)


def get_document(documents: DocumentRepository, document_id: str) -> Document:
    """Raises `NotFoundError`."""
    _check_id(document_id)
    return documents.get(document_id)


def get_content(documents: DocumentRepository, document_id: str) -> DocumentContent:
    """Content of the latest version, undecoded. Raises `NotFoundError`."""
    return documents.content(document_id, get_document(documents, document_id).content_hash)


def list_documents(
    documents: DocumentRepository,
    *,
    limit: int = 50,
    cursor: str | None = None,
    state: DocumentState | None = None,
) -> DocumentPage:
    """A page in the order of ids; `cursor` is the previous page's `next_cursor`. Raises `InvalidInputError`."""
    if not 1 <= limit <= MAX_PAGE:
        raise InvalidInputError(f"limit must be 1 to {MAX_PAGE}, got {limit}")
    if cursor is not None:
        _check_id(cursor)
    return documents.page(limit=limit, cursor=cursor, state=state)


def _check_id(document_id: str) -> None:
    try:
        _IDENTIFIER.validate_python(document_id)
    except ValidationError:
        raise InvalidInputError(
            "a document id has 1 to 64 letters, digits, hyphens or underscores and begins with a letter or digit"
        ) from None
