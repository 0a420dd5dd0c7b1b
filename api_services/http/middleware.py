"""Around every request: its id, a bound on its body, one access log line, and a last catch for bugs."""

import logging
import re
import time
from typing import Any, Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api_services.http.problems import internal_problem, problem_response
from api_services.request_context import new_request_id, request_context

REQUEST_ID_HEADER: Final = "X-Request-Id"
MAX_BODY_BYTES: Final = 8 * 1024 * 1024
"""Above the largest document (5 MiB) as JSON, below what a process should hold for one request."""

_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_QUIET: Final = frozenset({"/healthz", "/readyz"})

access_log = logging.getLogger("api.access")
logger = logging.getLogger(__name__)

_SECURITY_HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    # Not `no-referrer`: under it browsers send forms with `Origin: null`, and the portal checks the origin.
    "Referrer-Policy": "same-origin",
    "X-Frame-Options": "DENY",
}


class RequestMiddleware:
    """A valid `X-Request-Id` is taken over, any other replaced; it is in force for logs and messages, and returned."""

    def __init__(self, app: ASGIApp, *, max_body_bytes: int = MAX_BODY_BYTES) -> None:
        self._app = app
        self._max_body_bytes = max_body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        given = headers.get(REQUEST_ID_HEADER, "")
        request_id = given if _REQUEST_ID.fullmatch(given) else new_request_id()
        with request_context(request_id):
            await self._run(scope, receive, send, headers, request_id)

    async def _run(self, scope: Scope, receive: Receive, send: Send, headers: Headers, request_id: str) -> None:
        started = time.perf_counter()
        status = 0

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                reply = MutableHeaders(scope=message)
                reply[REQUEST_ID_HEADER] = request_id
                for name, value in _SECURITY_HEADERS.items():
                    reply.setdefault(name, value)
                reply.setdefault("Cache-Control", "no-store")
            await send(message)

        try:
            declared = headers.get("content-length", "0")
            if declared.isdigit() and int(declared) > self._max_body_bytes:
                await self._too_large()(scope, receive, send_with_id)
                return
            await self._app(scope, self._bounded(receive), send_with_id)
        except Exception:
            logger.exception("http.unhandled_error", extra={"path": scope["path"]})
            if status:
                raise
            await internal_problem()(scope, receive, send_with_id)
        finally:
            if scope["path"] not in _QUIET or status >= 400:
                access_log.info("http.request", extra=self._line(scope, status, time.perf_counter() - started))

    def _too_large(self) -> Any:
        return problem_response(413, "body_too_large", f"A body has at most {self._max_body_bytes:,} bytes.")

    def _bounded(self, receive: Receive) -> Receive:
        """A body without a declared length is counted as it comes."""
        received = 0

        async def bounded() -> Message:
            nonlocal received
            message = await receive()
            if message["type"] == "http.request":
                received += len(message.get("body", b""))
                if received > self._max_body_bytes:
                    raise HTTPException(413, f"A body has at most {self._max_body_bytes:,} bytes.")
            return message

        return bounded

    @staticmethod
    def _line(scope: Scope, status: int, seconds: float) -> dict[str, Any]:
        route = scope.get("route")
        return {
            "method": scope["method"],
            "route": getattr(route, "path", scope["path"][:200]),
            "status": status,
            "durationMs": round(seconds * 1000, 1),
            "role": scope.get("role"),
        }
