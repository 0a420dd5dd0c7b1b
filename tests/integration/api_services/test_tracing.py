"""What the real SDK sends of a traced call."""

from collections.abc import Iterator

import pytest
from pydantic import SecretStr

from api_services.llm.costs import TokenUsage
from api_services.request_context import request_context
from api_services.settings import LangfuseSettings
from api_services.tracing import LangfuseTracer
from tests.support.langfuse_server import LangfuseServer, langfuse_server

pytestmark = pytest.mark.integration


@pytest.fixture
def sink() -> Iterator[LangfuseServer]:
    with langfuse_server() as server:
        yield server


def test_a_call_is_sent_to_the_configured_address_with_its_request_id_model_and_tokens(sink: LangfuseServer) -> None:
    settings = LangfuseSettings(
        langfuse_public_key="pk-traced",
        langfuse_secret_key=SecretStr("sk-traced"),
        langfuse_host=sink.url,
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
