"""A libSQL server for tests: Hrana 3 over HTTP (`POST /v3/pipeline`) on a file, with a token and faults on demand."""

import base64
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast

import libsql


class HranaServer(ThreadingHTTPServer):
    """`answer_with` makes every request fail with that HTTP status; `requests` counts pipelines."""

    daemon_threads = True

    def __init__(self, path: Path, *, token: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.path = path
        self.token = token
        self.answer_with: int | None = None
        self.silent = threading.Event()
        self.requests: list[int] = []
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """What `INDEX_URL` takes."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def stop(self) -> None:
        """Close the port."""
        self.silent.set()
        self.shutdown()
        self._thread.join()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: HranaServer  # pyright: ignore[reportIncompatibleVariableOverride]

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Tests print nothing."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.server.answer_with is not None:
            self._send(self.server.answer_with, {"error": "as told"})
        elif self.path != "/v3/pipeline":
            self._send(404, {"error": "no such path"})
        elif self.headers.get("Authorization") != f"Bearer {self.server.token}":
            self._send(401, {"error": "unauthorized"})
        else:
            self.server.requests.append(len(body["requests"][0]["batch"]["steps"]))
            self._send(200, {"baton": None, "base_url": None, "results": self._results(body["requests"])})

    def _results(self, requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
        connection = cast(Any, libsql).connect(str(self.server.path), timeout=0.0, isolation_level=None)
        results: list[dict[str, Any]] = []
        for request in requests:
            response: dict[str, Any] = {"type": request["type"]}
            if request["type"] == "batch":
                response["result"] = _batch(connection, request["batch"]["steps"])
            results.append({"type": "ok", "response": response})
        if connection.in_transaction:
            connection.rollback()
        connection.close()
        return results

    def _send(self, status: int, body: dict[str, Any]) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def _batch(connection: Any, steps: list[dict[str, Any]]) -> dict[str, Any]:
    done: list[dict[str, Any] | None] = []
    errors: list[dict[str, Any] | None] = []
    for step in steps:
        condition = step.get("condition")
        result: dict[str, Any] | None = None
        error: dict[str, Any] | None = None
        if condition is None or done[condition["step"]] is not None:
            try:
                args = tuple(_value(arg) for arg in step["stmt"]["args"])
                rows: list[Any] = connection.execute(step["stmt"]["sql"], args).fetchall() or []
                result = {"cols": [], "rows": [[_cell(value) for value in row] for row in rows]}
            except ValueError as exc:
                code = "SQLITE_BUSY" if "locked" in str(exc) else "SQLITE_ERROR"
                error = {"message": str(exc), "code": code}
        done.append(result)
        errors.append(error)
    return {"step_results": done, "step_errors": errors}


def _value(arg: dict[str, Any]) -> Any:
    if arg["type"] == "blob":
        return base64.b64decode(arg["base64"])
    if arg["type"] == "null":
        return None
    return {"integer": int, "float": float, "text": str}[arg["type"]](arg["value"])


def _cell(value: Any) -> dict[str, Any]:
    if value is None:
        return {"type": "null"}
    if isinstance(value, int):
        return {"type": "integer", "value": str(value)}
    if isinstance(value, float):
        return {"type": "float", "value": value}
    if isinstance(value, bytes):
        return {"type": "blob", "base64": base64.b64encode(value).decode().rstrip("=")}
    return {"type": "text", "value": value}
