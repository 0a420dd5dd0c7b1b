"""What the real SDK sends of a traced call."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from pydantic import SecretStr

from api_services.llm.costs import TokenUsage
from api_services.request_context import request_context
from api_services.settings import LangfuseSettings
from api_services.tracing import LangfuseTracer

pytestmark = pytest.mark.integration


class Sink(ThreadingHTTPServer):
    """Keeps the bodies of what is exported."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.received: list[tuple[str, bytes]] = []


class _Handler(BaseHTTPRequestHandler):
    server: Sink  # pyright: ignore[reportIncompatibleVariableOverride]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Content-Encoding") == "gzip":
            import gzip

            body = gzip.decompress(body)
        self.server.received.append((self.path, body))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        return


@pytest.fixture
def sink() -> Iterator[Sink]:
    server = Sink()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_call_is_sent_to_the_configured_address_with_its_request_id_model_and_tokens(sink: Sink) -> None:
    settings = LangfuseSettings(
        langfuse_public_key="pk-traced",
        langfuse_secret_key=SecretStr("sk-traced"),
        langfuse_host=f"http://127.0.0.1:{sink.server_address[1]}",
    )
    tracer = LangfuseTracer(settings)
    with (
        request_context("request-4711"),
        tracer.generation(
            "report", model="gpt-5-mini", messages=[{"role": "user", "content": "the transcript"}]
        ) as trace,
    ):
        trace.answered("the answer", TokenUsage(12, 0, 34), 71)
    with pytest.raises(KeyError), tracer.generation("report", model="gpt-5-mini", messages=[]):
        raise KeyError("secret detail")
    tracer.flush(20)
    sent = b"".join(body for path, body in sink.received if path.startswith("/api/public/otel"))
    for part in (b"request-4711", b"gpt-5-mini", b"the transcript", b"the answer", b'"output": 34', b"KeyError"):
        assert part in sent
    assert b"secret detail" not in sent
