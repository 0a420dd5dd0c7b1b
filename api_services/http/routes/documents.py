"""Documents of the portal and search over them."""

from typing import Annotated

from fastapi import APIRouter, Path, Query
from pydantic import Field, StringConstraints

from api_services.documents import service
from api_services.documents.models import (
    MAX_CONTENT_BYTES,
    MAX_PAGE,
    MAX_QUERY_CHARS,
    Document,
    DocumentFormat,
    DocumentPage,
    DocumentState,
    SearchPage,
    Title,
)
from api_services.documents.search import MAX_DOCUMENT_IDS
from api_services.http.auth import BEARER, Role, guarded
from api_services.http.dependencies import Deps
from api_services.http.problems import responses
from api_services.http.schemas import Input
from api_services.messages import Identifier

DocumentId = Annotated[Identifier, Path(alias="documentId")]

router = APIRouter(tags=["documents"], route_class=guarded(Role.PORTAL, Role.ADMIN), dependencies=[BEARER])


class DocumentInput(Input):
    """A document's text; the same title, format and content again make no new version."""

    title: Title
    content: Annotated[str, StringConstraints(max_length=MAX_CONTENT_BYTES)]
    format: DocumentFormat = DocumentFormat.MARKDOWN


class Approval(Input):
    """`version`, where given, must be the latest: nobody approves what they have not seen."""

    version: Annotated[int, Field(ge=1, le=2**31)] | None = None


@router.get("/documents", responses=responses())
def list_documents(
    deps: Deps,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE)] = 50,
    cursor: Identifier | None = None,
    state: DocumentState | None = None,
) -> DocumentPage:
    """A page of documents in the order of their ids."""
    return service.list_documents(deps.documents, limit=limit, cursor=cursor, state=state)


@router.get("/documents/{documentId}", responses=responses(404))
def get_document(document_id: DocumentId, deps: Deps) -> Document:
    """The document and how far its indexing is, without its content."""
    return service.get_document(deps.documents, document_id)


@router.put("/documents/{documentId}", responses=responses(409, 413))
def upsert_document(document_id: DocumentId, document: DocumentInput, deps: Deps) -> Document:
    """Keep the content as a new draft version. Search does not change until it is approved."""
    return service.upsert_document(
        deps.documents,
        document_id=document_id,
        title=document.title,
        content=document.content,
        document_format=document.format,
    )


@router.post("/documents/{documentId}/approve", responses=responses(404, 409, 413))
def approve_document(document_id: DocumentId, deps: Deps, approval: Approval | None = None) -> Document:
    """Approve the latest version and publish it to the index at once. Approving again is no error."""
    version = approval.version if approval is not None else None
    return service.approve_document(deps.documents, deps.sender, document_id=document_id, version=version)


@router.post("/documents/{documentId}/withdraw", responses=responses(404, 409))
def withdraw_document(document_id: DocumentId, deps: Deps) -> Document:
    """Take the document out of search. Withdrawing again is no error."""
    return service.withdraw_document(deps.documents, deps.sender, document_id=document_id)


@router.get("/search", tags=["search"], responses=responses())
def search(
    deps: Deps,
    q: Annotated[str, Query(min_length=1, max_length=MAX_QUERY_CHARS)],
    document: Annotated[list[Identifier] | None, Query(max_length=MAX_DOCUMENT_IDS)] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE)] = 10,
    cursor: Annotated[str | None, Query(max_length=16)] = None,
) -> SearchPage:
    """Chunks that answer `q` best, by full text and meaning; `document` (repeatable) restricts where to look."""
    return deps.search(query=q, document_ids=tuple(document or ()), limit=limit, cursor=cursor)
