"""A server that takes what Langfuse's SDK exports."""

import gzip
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class LangfuseServer(ThreadingHTTPServer):
    """Keeps path and body of what is exported; shows traces when `shows` says so, and answers `refuses` otherwise."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.received: list[tuple[str, bytes]] = []
        self.shows = True
        self.refuses = 404

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: LangfuseServer  # pyright: ignore[reportIncompatibleVariableOverride]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        self.server.received.append((self.path, body))
        self._answer(200)

    def do_GET(self) -> None:
        found = bool(self.server.received) and self.server.shows and self.path.startswith("/api/public/traces/")
        self._answer(200 if found else self.server.refuses)

    def _answer(self, status: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        return


@contextmanager
def langfuse_server() -> Generator[LangfuseServer]:
    """The server, listening on a free loopback port."""
    server = LangfuseServer()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()
