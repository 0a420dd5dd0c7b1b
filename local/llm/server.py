"""The HTTP side: one thread a connection, loopback only, with controls under `/_control/`."""

import json
import select
import socket
import sys
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, cast

from pydantic import ValidationError

from local.llm.api import Call, RefusedRequestError, parse, reply
from local.llm.faults import CallKind, Calls, Fault, Faults, Hit

MAX_BODY_BYTES: Final = 32 * 1024 * 1024

_ENDPOINTS: Final[Mapping[str, CallKind]] = {
    "/v1/chat/completions": "chat",
    "/v1/responses": "responses",
    "/v1/embeddings": "embeddings",
}

_RATE_LIMIT: Final = (429, "Rate limit reached for requests.", "requests", "rate_limit_exceeded")
_QUOTA: Final = (
    429,
    "You exceeded your current quota, please check your plan and billing details.",
    "insufficient_quota",
    "insufficient_quota",
)
_SERVER: Final = (500, "The server had an error while processing your request.", "server_error", None)


class LlmServer(ThreadingHTTPServer):
    """`start()` serves in the background; `stop()` lets hanging calls go and closes the port."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, port: int = 0, *, latency_seconds: float = 0.0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.latency_seconds = latency_seconds
        self.faults = Faults()
        self.calls = Calls()
        self.stopping = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def base_url(self) -> str:
        """What `OPENAI_BASE_URL` takes."""
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def start(self) -> "LlmServer":
        """Serve in a thread."""
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._thread.start()
        return self

    def stop(self) -> None:
        """Close the port; calls in flight are let go."""
        self.stopping.set()
        self.faults.clear()
        if self._thread is not None:
            self.shutdown()
            self._thread.join()
        self.server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that left (killed, or out of patience) is not reported; anything else is."""
        if not isinstance(sys.exc_info()[1], ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server: LlmServer  # pyright: ignore[reportIncompatibleVariableOverride]  (narrower than the stub's BaseServer)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002, ARG002  (the base class names them)
        return

    def do_GET(self) -> None:
        if self.path == "/_control/calls":
            self._send(200, self.server.calls.counted())
        elif self.path == "/_control/faults":
            self._send(200, {"faults": self.server.faults.listed()})
        elif self.path == "/healthz":
            self._send(200, {"status": "ok"})
        else:
            self._not_found()

    def do_DELETE(self) -> None:
        self._body()
        if self.path == "/_control/faults":
            self.server.faults.clear()
        elif self.path == "/_control/calls":
            self.server.calls.reset()
        else:
            self._not_found()
            return
        self._send(200, {"status": "ok"})

    def do_POST(self) -> None:
        raw = self._body()
        if raw is None:
            self._error(413, "The request body is too large.", "invalid_request_error", None)
            return
        if self.path.startswith("/_control/"):
            self._control(raw)
            return
        kind = _ENDPOINTS.get(self.path)
        if kind is None:
            self._not_found()
            return
        self.server.calls.begin(kind)
        try:
            self._model_call(kind, raw)
        finally:
            self.server.calls.end()

    def _control(self, raw: bytes) -> None:
        try:
            if self.path == "/_control/faults":
                self.server.faults.add(Fault.model_validate_json(raw))
            elif self.path == "/_control/latency":
                self.server.latency_seconds = float(json.loads(raw)["seconds"])
            else:
                self._not_found()
                return
        except (ValidationError, ValueError, KeyError, TypeError) as exc:
            self._error(400, str(exc), "invalid_request_error", None)
            return
        self._send(200, {"status": "ok"})

    def _model_call(self, kind: CallKind, raw: bytes) -> None:
        if not self.headers.get("Authorization", "").startswith("Bearer "):
            self._error(401, "You didn't provide an API key.", "invalid_request_error", "invalid_api_key")
            return
        try:
            body: Any = json.loads(raw)
            if not isinstance(body, dict):
                raise ValueError("not an object")
        except ValueError:
            self._error(400, "We could not parse the JSON body of your request.", "invalid_request_error", None)
            return
        try:
            call = parse(kind, cast(Mapping[str, Any], body))
        except RefusedRequestError as exc:
            self._send(exc.status, exc.body)
            return
        hit = self.server.faults.strike(kind, "\n".join(call.contents))
        if hit is not None:
            self.server.calls.struck(hit.fault)
        self._answer(call, hit)

    def _answer(self, call: Call, hit: Hit | None) -> None:
        fault = hit.fault if hit is not None else None
        wait = self.server.latency_seconds + (fault.delay_seconds if fault and fault.kind == "slow" else 0.0)
        match fault.kind if fault else None:
            case "rate_limit" if fault:
                seconds = f"{fault.retry_after_seconds:g}"
                self._error(*_RATE_LIMIT, headers={"retry-after": seconds})
                return
            case "insufficient_quota":
                self._error(*_QUOTA)
                return
            case "server_error":
                self._error(*_SERVER)
                return
            case "hang" if hit:
                while not hit.gone.wait(0.1) and not self._client_left():
                    continue
                self._error(*_SERVER)
                return
            case _:
                if wait > 0:
                    self.server.stopping.wait(wait)
        answered = reply(call, fault)
        self.server.calls.answered(call.kind, call.hashes, call.input_tokens, answered.output_tokens)
        self._send(200, answered.body)

    def _client_left(self) -> bool:
        readable, _, _ = select.select([self.connection], [], [], 0)
        return bool(readable) and self.connection.recv(1, socket.MSG_PEEK) == b""

    def _body(self) -> bytes | None:
        length = int(self.headers.get("Content-Length") or 0)
        if length > MAX_BODY_BYTES:
            self.close_connection = True
            return None
        return self.rfile.read(length)

    def _not_found(self) -> None:
        self._error(404, f"Invalid URL ({self.command} {self.path})", "invalid_request_error", None)

    def _error(
        self, status: int, message: str, kind: str, code: str | None, *, headers: Mapping[str, str] | None = None
    ) -> None:
        self._send(status, {"error": {"message": message, "type": kind, "param": None, "code": code}}, headers)

    def _send(self, status: int, body: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> None:
        payload = json.dumps(body, ensure_ascii=False).encode("utf-8", "surrogatepass")
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(payload)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(payload)
        self.wfile.flush()
