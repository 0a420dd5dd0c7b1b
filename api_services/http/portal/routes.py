"""Routes of the portal. Every POST needs the session's form token and must come from this very origin."""

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, Final, Literal
from urllib.parse import parse_qsl, quote

from fastapi import APIRouter, Depends, FastAPI, Path, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, RedirectResponse
from fastapi.routing import APIRoute
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException

from api_services.documents import service
from api_services.documents.models import MAX_QUERY_CHARS, Document, DocumentFormat, DocumentState
from api_services.errors import AppError, InvalidInputError, NotFoundError
from api_services.http.auth import Role
from api_services.http.dependencies import ApiDependencies, Deps
from api_services.http.portal.pages import STATIC, page, state_view, states_json
from api_services.http.portal.session import COOKIE, COOKIE_PATH, LIFETIME, Session, Sessions
from api_services.http.problems import HttpError, status_of
from api_services.messages import Identifier
from api_services.request_context import current_request_id

PAGE_SIZE: Final = 50
HITS: Final = 10
MAX_POLLED: Final = 100
_MAX_FORM_FIELDS: Final = 16
_FORM: Final = "application/x-www-form-urlencoded"
_OPEN: Final = frozenset({"/portal/login"})
_ROLES: Final = frozenset({Role.PORTAL, Role.ADMIN})
_PORTAL_PATH: Final = re.compile(r"/portal(/[A-Za-z0-9_-]+)*(\?[A-Za-z0-9_=&%.+-]*)?")

Form = Mapping[str, str]


class PortalRoute(APIRoute):
    """Signs visitors in before anything else, and shows errors as pages."""

    def get_route_handler(self) -> Callable[[Request], Awaitable[Response]]:  # pyright: ignore[reportIncompatibleMethodOverride]
        handle: Any = super().get_route_handler()

        async def with_session(request: Request) -> Response:
            deps: ApiDependencies = request.app.state.dependencies
            session = Sessions(deps.keys).read(request.cookies.get(COOKIE), deps.clock())
            request.state.session = session
            if session is None and self.path not in _OPEN:
                if request.url.path == "/portal/states":
                    return JSONResponse({"code": "signed_out"}, status_code=401)
                return _to_login(request)
            if session is not None:
                request.scope["role"] = session.role.value
            try:
                return await handle(request)
            except AppError as exc:
                status = status_of(exc)
                if status >= 500:
                    raise
                return _error_page(session, status, exc.message)
            except HttpError as exc:
                return _error_page(session, exc.status, exc.detail)
            except RequestValidationError:
                return _error_page(session, 404, "There is no such page.")
            except HTTPException as exc:
                return _error_page(session, exc.status_code, str(exc.detail))

        return with_session


router = APIRouter(prefix="/portal", route_class=PortalRoute, include_in_schema=False)


class _Static(StaticFiles):
    """Names carry a content hash, so browsers may keep the files."""

    async def get_response(self, path: str, scope: Any) -> Response:
        response = await super().get_response(path, scope)
        response.headers["Cache-Control"] = "public, max-age=86400"
        return response


def mount_static(app: FastAPI) -> None:
    """Serve the style sheet and the script."""
    app.mount("/portal/static", _Static(directory=STATIC), name="portal-static")


def _session(request: Request) -> Session:
    session: Session | None = request.state.session
    assert session is not None  # noqa: S101  (PortalRoute lets nobody else in)
    return session


async def _submitted(request: Request) -> Form:
    """The form's fields, from a page of this origin."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _FORM:
        raise HttpError(415, "unsupported_media_type", "Forms are sent URL-encoded.")
    site = request.headers.get("sec-fetch-site")
    origin = request.headers.get("origin")
    if (site is not None and site != "same-origin") or (
        origin is not None and origin.partition("://")[2] != request.headers.get("host")
    ):
        raise HttpError(403, "other_origin", "This form was not sent from the portal.")
    raw = (await request.body()).decode("utf-8", "replace")
    try:
        return dict(parse_qsl(raw, keep_blank_values=True, max_num_fields=_MAX_FORM_FIELDS))
    except ValueError:
        raise HttpError(400, "bad_request", "The form has too many fields.") from None


async def _trusted(request: Request, deps: Deps) -> Form:
    """The form's fields, with the token of this session."""
    form = await _submitted(request)
    if not Sessions(deps.keys).is_form_token(_session(request), form.get("token", "")):
        raise HttpError(403, "form_token", "This form is from another session. Reload the page and send it again.")
    return form


DocumentId = Annotated[Identifier, Path(alias="documentId")]
Signed = Annotated[Session, Depends(_session)]
Trusted = Annotated[Form, Depends(_trusted)]


@router.get("")
def home() -> Response:
    return RedirectResponse("/portal/documents", status_code=303)


@router.get("/login")
def login_page(request: Request, after: Annotated[str, Query(alias="next", max_length=512)] = "") -> Response:
    if request.state.session is not None:
        return RedirectResponse(_inside(after), status_code=303)
    return page("login.html", session=None, after=_inside(after), error=None)


@router.post("/login")
def login(form: Annotated[Form, Depends(_submitted)], deps: Deps) -> Response:
    after = _inside(form.get("next", ""))
    role = deps.keys.role_of(form.get("key", "").strip())
    if role is None or role not in _ROLES:
        error = "That key does not open the portal." if role is None else f"A {role} key does not open the portal."
        return page("login.html", status=401, session=None, after=after, error=error)
    _, cookie = Sessions(deps.keys).start(role, deps.clock())
    response = RedirectResponse(after, status_code=303)
    response.set_cookie(
        COOKIE,
        cookie,
        max_age=int(LIFETIME.total_seconds()),
        path=COOKIE_PATH,
        secure=deps.secure_cookies,
        httponly=True,
        samesite="strict",
    )
    return response


@router.post("/logout")
def logout(_form: Trusted) -> Response:
    response = RedirectResponse("/portal/login", status_code=303)
    response.delete_cookie(COOKIE, path=COOKIE_PATH)
    return response


@router.get("/documents")
def document_list(
    session: Signed, deps: Deps, cursor: Identifier | None = None, state: DocumentState | Literal[""] | None = None
) -> Response:
    state = state or None
    found = service.list_documents(deps.documents, limit=PAGE_SIZE, cursor=cursor, state=state)
    return page(
        "documents.html",
        **_frame(session, deps),
        documents=found.documents,
        next_cursor=found.next_cursor,
        cursor=cursor,
        state=state,
        states=list(DocumentState),
    )


@router.get("/documents/new")
def new_document(session: Signed, deps: Deps) -> Response:
    blank = {"document_id": "", "title": "", "format": DocumentFormat.MARKDOWN.value, "content": ""}
    return _editor(session, deps, None, blank)


@router.post("/documents/new")
def create_document(form: Trusted, session: Signed, deps: Deps) -> Response:
    fields = _fields(form)
    try:
        service.get_document(deps.documents, fields["document_id"])
    except NotFoundError:
        return _save(session, deps, None, fields, approve=form.get("action") == "approve")
    except InvalidInputError as exc:
        return _editor(session, deps, None, fields, error=exc.message, status=422)
    error = f"There is a document '{fields['document_id']}' already; choose another id."
    return _editor(session, deps, None, fields, error=error, status=409)


@router.get("/documents/{documentId}")
def edit_document(document_id: DocumentId, session: Signed, deps: Deps) -> Response:
    return _stored_editor(session, deps, document_id)


@router.post("/documents/{documentId}")
def save_document(document_id: DocumentId, form: Trusted, session: Signed, deps: Deps) -> Response:
    document = service.get_document(deps.documents, document_id)
    fields = {**_fields(form), "document_id": document_id}
    if form.get("version") != str(document.version):
        error = (
            "Someone else saved this document meanwhile. Your text is below; saving again puts it in place of theirs."
        )
        return _editor(session, deps, document, fields, error=error, status=409)
    return _save(session, deps, document, fields, approve=form.get("action") == "approve")


@router.post("/documents/{documentId}/approve")
def approve_document(document_id: DocumentId, form: Trusted, deps: Deps) -> Response:
    version = form.get("version", "")
    if not version.isdigit():
        raise HttpError(400, "bad_request", "The form names no version.")
    service.approve_document(deps.documents, deps.sender, document_id=document_id, version=int(version[:9]))
    return _back(form, document_id)


@router.post("/documents/{documentId}/withdraw")
def withdraw_document(document_id: DocumentId, form: Trusted, deps: Deps) -> Response:
    service.withdraw_document(deps.documents, deps.sender, document_id=document_id)
    return _back(form, document_id)


@router.get("/states")
def states(deps: Deps, ids: Annotated[list[Identifier], Query(alias="id", max_length=MAX_POLLED)]) -> Response:
    """Polled by the pages' script; ids that are gone are left out."""
    found: list[Document] = []
    for document_id in ids:
        try:
            found.append(service.get_document(deps.documents, document_id))
        except NotFoundError:
            continue
    return JSONResponse(states_json(found))


@router.get("/search")
def search_page(
    session: Signed,
    deps: Deps,
    q: Annotated[str, Query(max_length=MAX_QUERY_CHARS)] = "",
    cursor: Annotated[str | None, Query(max_length=16)] = None,
) -> Response:
    found = deps.search(query=q, document_ids=(), limit=HITS, cursor=cursor) if q.strip() else None
    return page("search.html", **_frame(session, deps), q=q, found=found)


def _frame(session: Session, deps: ApiDependencies) -> dict[str, Any]:
    return {"session": session, "token": Sessions(deps.keys).form_token(session)}


def _fields(form: Form) -> dict[str, str]:
    # Browsers send line ends of a text area as CRLF whatever they were.
    return {
        "document_id": form.get("document_id", "").strip(),
        "title": form.get("title", ""),
        "format": form.get("format", ""),
        "content": form.get("content", "").replace("\r\n", "\n"),
    }


def _save(
    session: Session, deps: ApiDependencies, document: Document | None, fields: Mapping[str, str], *, approve: bool
) -> Response:
    try:
        if fields["format"] not in set(DocumentFormat):
            raise InvalidInputError("Choose one of the formats.")
        saved = service.upsert_document(
            deps.documents,
            document_id=fields["document_id"],
            title=fields["title"],
            content=fields["content"],
            document_format=DocumentFormat(fields["format"]),
        )
    except InvalidInputError as exc:
        return _editor(session, deps, document, fields, error=exc.message, status=422)
    if approve:
        service.approve_document(deps.documents, deps.sender, document_id=saved.document_id, version=saved.version)
    return RedirectResponse(f"/portal/documents/{saved.document_id}", status_code=303)


def _stored_editor(session: Session, deps: ApiDependencies, document_id: str) -> Response:
    document = service.get_document(deps.documents, document_id)
    content = service.get_content(deps.documents, document_id).content
    fields: dict[str, str | None] = {
        "document_id": document_id,
        "title": document.title,
        "format": document.format.value,
        "content": _text_of(content),
    }
    return _editor(session, deps, document, fields)


def _text_of(content: bytes) -> str | None:
    """The content as a text area can give it back unchanged, else None."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return None
    return None if "\r" in text or "\0" in text else text


def _editor(
    session: Session,
    deps: ApiDependencies,
    document: Document | None,
    fields: Mapping[str, str | None],
    *,
    error: str | None = None,
    status: int = 200,
) -> Response:
    return page(
        "document.html",
        status=status,
        **_frame(session, deps),
        document=document,
        view=state_view(document) if document is not None else None,
        fields=fields,
        formats=list(DocumentFormat),
        error=error,
    )


def _error_page(session: Session | None, status: int, message: str) -> Response:
    return page(
        "error.html",
        status=status,
        session=None,
        status_code=status,
        message=message,
        signed=session is not None,
        request_id=current_request_id(),
    )


def _to_login(request: Request) -> Response:
    wanted = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    target = f"/portal/login?next={quote(wanted)}" if request.method == "GET" else "/portal/login"
    return RedirectResponse(target, status_code=303)


def _inside(target: str) -> str:
    """`target` where it is a page of the portal; no one is sent elsewhere after signing in."""
    return target if _PORTAL_PATH.fullmatch(target) else "/portal/documents"


def _back(form: Form, document_id: str) -> Response:
    return RedirectResponse(_inside(form.get("back") or f"/portal/documents/{document_id}"), status_code=303)
