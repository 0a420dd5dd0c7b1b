"""A trace that `verify` sends with the real SDK is found again, or the reason why not is said."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from pydantic import SecretStr

from api_services.settings import LangfuseSettings
from cli.verify.tracing import check_trace

pytestmark = pytest.mark.integration


class Langfuse(ThreadingHTTPServer):
    """Takes traces; shows them when `shows` says so, with the status `refuses` otherwise."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.taken = 0
        self.shows = True
        self.refuses = 404

    @property
    def settings(self) -> LangfuseSettings:
        return LangfuseSettings(
            langfuse_public_key="pk-verify",
            langfuse_secret_key=SecretStr("sk-verify"),
            langfuse_base_url=f"http://127.0.0.1:{self.server_port}",
        )


class _Handler(BaseHTTPRequestHandler):
    server: Langfuse  # pyright: ignore[reportIncompatibleVariableOverride]

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.taken += 1
        self._answer(200)

    def do_GET(self) -> None:
        found = self.server.taken > 0 and self.server.shows and self.path.startswith("/api/public/traces/")
        self._answer(200 if found else self.server.refuses)

    def _answer(self, status: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        return


@pytest.fixture
def langfuse() -> Iterator[Langfuse]:
    server = Langfuse()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_trace_that_arrives_is_read_back(langfuse: Langfuse) -> None:
    ok, detail = check_trace(langfuse.settings)
    assert (ok, langfuse.taken) == (True, 1), detail


def test_keys_of_another_region_are_told_from_a_trace_that_is_late(langfuse: Langfuse) -> None:
    langfuse.shows, langfuse.refuses = False, 401
    ok, detail = check_trace(langfuse.settings)
    assert not ok
    assert "refuses the keys" in detail
    assert "sk-verify" not in detail


def test_a_trace_that_is_never_shown_is_a_fault_that_names_the_variable(langfuse: Langfuse) -> None:
    langfuse.shows = False
    ok, detail = check_trace(langfuse.settings, wait_seconds=0.2)
    assert not ok
    assert "LANGFUSE_BASE_URL" in detail
