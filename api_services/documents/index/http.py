"""The remote driver: a libSQL server (Turso, sqld) over HTTP, protocol Hrana 3, one request a transaction."""

import base64
import json
import threading
from collections.abc import Sequence
from typing import Any, Final, cast
from urllib.parse import urlsplit

from api_services.documents.errors import IndexAccessError, IndexUnavailableError
from api_services.documents.index.driver import (
    DEFAULT_WAIT_SECONDS,
    IndexDriver,
    Row,
    Statement,
    Value,
    WriterBusyError,
    retry_while_busy,
)

REQUEST_TIMEOUT_SECONDS: Final = 30.0
CONNECT_TIMEOUT_SECONDS: Final = 5.0
BATCH_ROWS: Final = 250
BATCH_BYTES: Final = 4 * 1024 * 1024
"""Of one request; servers and their proxies bound a body, and a lost request repeats all of it."""

_WRONG_PLACE: Final = frozenset({301, 302, 307, 308, 400, 404, 405})


class LibsqlHttpDriver(IndexDriver):
    """Statements of a transaction travel together, so it never stays open across the network."""

    max_batch_rows = BATCH_ROWS
    max_batch_bytes = BATCH_BYTES

    def __init__(self, url: str, auth_token: str | None, *, timeout_seconds: float = REQUEST_TIMEOUT_SECONDS) -> None:
        parts = urlsplit(url)
        scheme = "https" if parts.scheme in ("libsql", "turso") else parts.scheme
        self._host = parts.netloc.rpartition("@")[2]
        self._url = f"{scheme}://{self._host}{parts.path.rstrip('/')}/v3/pipeline"
        self._token = auth_token
        self._timeout_seconds = timeout_seconds
        self._lock = threading.Lock()
        self._client: Any = None

    def read(self, statements: Sequence[Statement]) -> list[list[Row]]:
        """The rows of each statement."""
        return retry_while_busy(lambda: self._batch(statements), wait_seconds=DEFAULT_WAIT_SECONDS)

    def write(self, statements: Sequence[Statement], *, wait_seconds: float = DEFAULT_WAIT_SECONDS) -> list[list[Row]]:
        """Run all in one immediate transaction, or none."""
        whole = [Statement("BEGIN IMMEDIATE"), *statements, Statement("COMMIT")]
        return retry_while_busy(lambda: self._batch(whole), wait_seconds=wait_seconds)[1:-1]

    def close(self) -> None:
        """Close kept connections."""
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def _batch(self, statements: Sequence[Statement]) -> list[list[Row]]:
        """One batch in which each step runs only after the one before; the stream is closed, which rolls back."""
        steps: list[dict[str, Any]] = []
        for number, (sql, args) in enumerate(statements):
            step: dict[str, Any] = {"stmt": {"sql": sql, "args": [_encoded(value) for value in args]}}
            if number:
                step["condition"] = {"type": "ok", "step": number - 1}
            steps.append(step)
        requests = [{"type": "batch", "batch": {"steps": steps}}, {"type": "close"}]
        answer = self._post({"baton": None, "requests": requests})
        try:
            first = answer["results"][0]
            if first["type"] == "error":
                raise self._failed(first["error"])
            result = first["response"]["result"]
            for error in result["step_errors"]:
                if error is not None:
                    raise self._failed(error)
            return [[[_decoded(cell) for cell in row] for row in step["rows"]] for step in result["step_results"]]
        except (KeyError, IndexError, TypeError, ValueError) as exc:
            raise IndexUnavailableError(f"the answer of {self._host} is not Hrana 3; check INDEX_URL") from exc

    def _post(self, body: dict[str, Any]) -> dict[str, Any]:
        import httpx

        content = json.dumps(body, separators=(",", ":")).encode()
        try:
            response = self._http().post(self._url, content=content, headers=self._headers())
        except (httpx.UnsupportedProtocol, httpx.InvalidURL) as exc:
            raise IndexAccessError("INDEX_URL is not a URL of a libSQL server") from exc
        except httpx.HTTPError as exc:
            raise IndexUnavailableError(
                f"the search index at {self._host} did not answer ({type(exc).__name__})"
            ) from exc
        if response.status_code in (401, 403):
            raise IndexAccessError(f"{self._host} refused the token of the search index; set TURSO_AUTH_TOKEN")
        if response.status_code in _WRONG_PLACE:
            raise IndexAccessError(
                f"there is no libSQL database at {self._host} (HTTP {response.status_code}); correct INDEX_URL"
            )
        if response.status_code != 200:
            raise IndexUnavailableError(f"the search index at {self._host} answered HTTP {response.status_code}")
        try:
            answer: Any = response.json()
        except ValueError as exc:
            raise IndexUnavailableError(f"the answer of {self._host} is not JSON; check INDEX_URL") from exc
        return cast(dict[str, Any], answer)

    def _http(self) -> Any:
        import httpx

        with self._lock:
            if self._client is None:
                self._client = httpx.Client(
                    timeout=httpx.Timeout(self._timeout_seconds, connect=CONNECT_TIMEOUT_SECONDS),
                    follow_redirects=False,
                )
            return self._client

    def _headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/json"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        return headers

    def _failed(self, error: dict[str, Any]) -> Exception:
        code = str(error.get("code") or "")
        message = str(error.get("message") or "unknown error")
        if code.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")) or "database is locked" in message:
            return WriterBusyError(message)
        return IndexUnavailableError(f"the search index failed: {message} {code}".rstrip())


def _encoded(value: Value) -> dict[str, Any]:
    if value is None:
        return {"type": "null"}
    if isinstance(value, int):
        return {"type": "integer", "value": str(value)}
    if isinstance(value, float):
        return {"type": "float", "value": value}
    if isinstance(value, str):
        return {"type": "text", "value": value}
    return {"type": "blob", "base64": base64.b64encode(value).decode()}


def _decoded(cell: dict[str, Any]) -> Value:
    kind = cell["type"]
    if kind == "null":
        return None
    if kind == "integer":
        return int(cell["value"])
    if kind == "float":
        return float(cell["value"])
    if kind == "text":
        return str(cell["value"])
    if kind == "blob":
        # The server may leave out the padding.
        encoded = str(cell["base64"])
        return base64.b64decode(encoded + "=" * (-len(encoded) % 4))
    raise ValueError(f"unknown type {kind!r}")
