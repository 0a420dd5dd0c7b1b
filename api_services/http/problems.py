"""Errors as the API shows them: problem+json (RFC 9457) with a stable code and the request id, no inner detail."""

import logging
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel
from starlette.exceptions import HTTPException

from api_services.errors import (
    AppError,
    BusyError,
    ConfigurationError,
    ConflictError,
    InvalidInputError,
    InvalidStateError,
    NotFoundError,
    PermanentError,
    QuotaExhaustedError,
    RateLimitedError,
    TransientError,
)
from api_services.request_context import current_request_id

logger = logging.getLogger(__name__)

MEDIA_TYPE: Final = "application/problem+json"

STATUS_BY_ERROR: Final[Mapping[type[AppError], int]] = {
    InvalidInputError: 422,
    NotFoundError: 404,
    ConflictError: 409,
    InvalidStateError: 409,
    QuotaExhaustedError: 503,
    PermanentError: 500,
    RateLimitedError: 503,
    BusyError: 503,
    TransientError: 503,
    ConfigurationError: 500,
    AppError: 500,
}
"""What the services' errors mean in HTTP; the nearest base class decides. 503 says: the same call may work later."""

RETRY_AFTER_SECONDS: Final = 5
MAX_FAULTS: Final = 50

_INTERNAL: Final = "Something went wrong on our side; the request id finds it in the logs."

_CODES: Final[Mapping[int, str]] = {
    400: "bad_request",
    404: "not_found",
    405: "method_not_allowed",
    413: "body_too_large",
    415: "unsupported_media_type",
}


class FieldFault(BaseModel):
    """What is wrong with one field; the value is never repeated."""

    field: str
    message: str


class Problem(BaseModel):
    """A problem as RFC 9457 describes it; `code` is stable, `detail` is for people."""

    model_config = ConfigDict(alias_generator=to_camel, validate_by_name=True, validate_by_alias=True)

    type: str = "about:blank"
    title: str
    status: int
    code: str
    detail: str
    request_id: str | None = None
    errors: list[FieldFault] | None = None


class HttpError(Exception):
    """An error that belongs to HTTP alone."""

    def __init__(self, status: int, code: str, detail: str, *, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.detail = detail
        self.headers = headers


def problem_response(
    status: int,
    code: str,
    detail: str,
    *,
    headers: Mapping[str, str] | None = None,
    errors: Sequence[FieldFault] | None = None,
) -> Response:
    """The response for a problem, with the request id in force."""
    problem = Problem(
        title=HTTPStatus(status).phrase,
        status=status,
        code=code,
        detail=detail,
        request_id=current_request_id(),
        errors=list(errors) if errors else None,
    )
    return JSONResponse(
        problem.model_dump(by_alias=True, exclude_none=True),
        status_code=status,
        headers=dict(headers or {}),
        media_type=MEDIA_TYPE,
    )


def internal_problem() -> Response:
    """A 500 that says nothing of its cause."""
    return problem_response(500, "internal", _INTERNAL)


def status_of(error: AppError) -> int:
    """The status of the nearest class in the table."""
    return next(STATUS_BY_ERROR[base] for base in type(error).__mro__ if base in STATUS_BY_ERROR)


def responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """OpenAPI entries for the problems a route may answer with, beside those any guarded route may."""
    schema = {"schema": {"$ref": "#/components/schemas/Problem"}}
    return {
        status: {"description": HTTPStatus(status).phrase, "content": {MEDIA_TYPE: schema}}
        for status in sorted({400, 401, 403, 422, 500, 503, *statuses})
    }


def register(app: FastAPI) -> None:
    """Have every error of `app` answered as a problem."""
    app.add_exception_handler(AppError, _app_error)
    app.add_exception_handler(HttpError, _http_error)
    app.add_exception_handler(HTTPException, _framework_error)
    app.add_exception_handler(RequestValidationError, _validation_error)


async def _app_error(request: Request, exc: Exception) -> Response:
    assert isinstance(exc, AppError)  # noqa: S101  (narrows; Starlette dispatches by this very class)
    status = status_of(exc)
    if status == HTTPStatus.INTERNAL_SERVER_ERROR:
        logger.error("http.unexpected_error", exc_info=exc, extra={"code": exc.code, "path": request.url.path})
        return internal_problem()
    headers: dict[str, str] = {}
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        seconds = getattr(exc, "retry_after_seconds", None) or RETRY_AFTER_SECONDS
        headers["Retry-After"] = str(max(1, round(seconds)))
        logger.warning("http.unavailable", exc_info=exc, extra={"code": exc.code, "path": request.url.path})
    return problem_response(status, exc.code, exc.message, headers=headers)


async def _http_error(_request: Request, exc: Exception) -> Response:
    assert isinstance(exc, HttpError)  # noqa: S101
    return problem_response(exc.status, exc.code, exc.detail, headers=exc.headers)


async def _framework_error(_request: Request, exc: Exception) -> Response:
    assert isinstance(exc, HTTPException)  # noqa: S101
    code = _CODES.get(exc.status_code, "http_error")
    return problem_response(exc.status_code, code, str(exc.detail), headers=exc.headers)


async def _validation_error(_request: Request, exc: Exception) -> Response:
    assert isinstance(exc, RequestValidationError)  # noqa: S101
    faults = exc.errors()
    if any(fault["type"] == "json_invalid" for fault in faults):
        return problem_response(400, "malformed_json", "The body is not JSON.")
    shown = [FieldFault(field=_field(fault["loc"]), message=fault["msg"]) for fault in faults[:MAX_FAULTS]]
    detail = "; ".join(f"{fault.field}: {fault.message}" for fault in shown[:3])
    return problem_response(422, "invalid_request", detail, errors=shown)


def _field(location: Sequence[Any]) -> str:
    where, *path = location
    return ".".join(str(part) for part in path) or str(where)
