"""The language model's client against a server of the same API, faults included."""

import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import SecretStr

from api_services.errors import DependencyError, PermanentError, QuotaExhaustedError, RateLimitedError
from api_services.llm.client import (
    ChatMessage,
    MalformedAnswerError,
    OpenAILanguageModel,
    RefusedAnswerError,
    RequestRefusedError,
    TruncatedAnswerError,
)
from api_services.llm.schemas import StructuredOutput
from api_services.request_context import request_context
from api_services.settings import OpenAISettings
from api_services.tracing import NoTracer
from local.llm.faults import Fault
from local.llm.server import LlmServer

pytestmark = pytest.mark.integration

MESSAGES: list[ChatMessage] = [
    {"role": "system", "content": "Summarise."},
    {"role": "user", "content": "The deadlock was found in the payment service after two days of logs."},
]


class Summary(StructuredOutput):
    summary: str
    score: int


@pytest.fixture(scope="module")
def running() -> Iterator[LlmServer]:
    server = LlmServer(0).start()
    yield server
    server.stop()


@pytest.fixture
def server(running: LlmServer) -> LlmServer:
    running.faults.clear()
    running.calls.reset()
    return running


class Waits:
    """Stands in for sleeping: keeps how long it would have been."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


@pytest.fixture
def waits() -> Waits:
    return Waits()


def client_of(base_url: str, waits: Waits) -> OpenAILanguageModel:
    settings = OpenAISettings(openai_api_key=SecretStr("sk-test"), openai_base_url=base_url)
    return OpenAILanguageModel(settings, NoTracer(), sleep=waits, jitter=lambda: 0.5)


@pytest.fixture
def llm(server: LlmServer, waits: Waits) -> OpenAILanguageModel:
    return client_of(server.base_url, waits)


def ask(llm: OpenAILanguageModel, *, timeout_seconds: float = 30, max_output_tokens: int = 2_000) -> Any:
    return llm.structured(
        Summary,
        MESSAGES,
        model="gpt-5-mini",
        name="test",
        max_output_tokens=max_output_tokens,
        timeout_seconds=timeout_seconds,
    )


def received(server: LlmServer) -> int:
    return sum(server.calls.counted()["received"].values())


def test_an_answer_is_parsed_and_its_tokens_and_cost_are_known(llm: OpenAILanguageModel, server: LlmServer) -> None:
    answer = ask(llm)
    assert answer.value.summary
    assert answer.usage.input_tokens > 0
    assert answer.usage.output_tokens > 0
    assert answer.cost_micro_usd is not None
    assert answer.cost_micro_usd > 0
    assert received(server) == 1


def test_a_refusal_is_permanent_after_one_call_and_its_tokens_are_known(
    llm: OpenAILanguageModel, server: LlmServer
) -> None:
    server.faults.add(Fault(kind="refusal"))
    with pytest.raises(RefusedAnswerError) as refused:
        ask(llm)
    assert "can't help" in refused.value.text
    assert refused.value.usage.total_tokens > 0
    assert received(server) == 1


def test_a_truncated_answer_is_named_as_such(llm: OpenAILanguageModel) -> None:
    with pytest.raises(TruncatedAnswerError) as truncated:
        ask(llm, max_output_tokens=1)
    assert truncated.value.usage.input_tokens > 0


def test_an_answer_that_is_not_json_is_transient_and_paid(llm: OpenAILanguageModel, server: LlmServer) -> None:
    server.faults.add(Fault(kind="invalid_json"))
    with pytest.raises(MalformedAnswerError) as malformed:
        ask(llm)
    assert malformed.value.usage.total_tokens > 0
    assert received(server) == 1


def test_an_exhausted_quota_is_called_once_and_is_no_rate_limit(
    llm: OpenAILanguageModel, server: LlmServer, waits: Waits
) -> None:
    server.faults.add(Fault(kind="insufficient_quota"))
    with pytest.raises(QuotaExhaustedError):
        ask(llm)
    assert received(server) == 1
    assert waits.seconds == []


def test_a_rate_limit_is_waited_for_as_long_as_it_says(
    llm: OpenAILanguageModel, server: LlmServer, waits: Waits
) -> None:
    server.faults.add(Fault(kind="rate_limit", count=2, retry_after_seconds=3))
    assert ask(llm).value.summary
    assert waits.seconds == [3, 3]
    assert received(server) == 3


def test_a_rate_limit_longer_than_we_wait_goes_back_to_the_queue_with_its_time(
    llm: OpenAILanguageModel, server: LlmServer, waits: Waits
) -> None:
    server.faults.add(Fault(kind="rate_limit", retry_after_seconds=90))
    with pytest.raises(RateLimitedError) as limited:
        ask(llm, timeout_seconds=300)
    assert limited.value.retry_after_seconds == 90
    assert (received(server), waits.seconds) == (1, [])


def test_server_errors_are_tried_three_times_with_growing_waits(
    llm: OpenAILanguageModel, server: LlmServer, waits: Waits
) -> None:
    server.faults.add(Fault(kind="server_error"))
    with pytest.raises(DependencyError) as fault:
        ask(llm)
    assert fault.value.code == "llm_unavailable"
    assert waits.seconds == [1, 2]
    assert received(server) == 3


def test_a_wait_that_would_outlast_the_time_is_not_begun(
    llm: OpenAILanguageModel, server: LlmServer, waits: Waits
) -> None:
    server.faults.add(Fault(kind="rate_limit", retry_after_seconds=15))
    with pytest.raises(RateLimitedError):
        ask(llm, timeout_seconds=15)
    assert (received(server), waits.seconds) == (1, [])


def test_a_server_that_never_answers_is_left_in_time_and_not_asked_again(
    llm: OpenAILanguageModel, server: LlmServer
) -> None:
    server.faults.add(Fault(kind="hang"))
    ask_until(llm, 2.0)
    assert received(server) == 1


def test_a_socket_that_accepts_and_says_nothing_is_left_in_time(waits: Waits) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        llm = client_of(f"http://127.0.0.1:{listening.getsockname()[1]}/v1", waits)
        ask_until(llm, 2.0)


def ask_until(llm: OpenAILanguageModel, seconds: float) -> None:
    llm._client()  # pyright: ignore[reportPrivateUsage]  (the SDK's import is not part of the call's time)
    started = time.monotonic()
    with pytest.raises(DependencyError) as timed_out:
        ask(llm, timeout_seconds=seconds)
    assert timed_out.value.code == "llm_timeout"
    assert time.monotonic() - started < seconds + 1


def test_a_refused_connection_is_transient_and_tried_again(waits: Waits) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    with pytest.raises(DependencyError):
        ask(client_of(f"http://127.0.0.1:{port}/v1", waits))
    assert len(waits.seconds) == 2


def test_without_time_nothing_is_asked(llm: OpenAILanguageModel, server: LlmServer) -> None:
    with pytest.raises(DependencyError):
        ask(llm, timeout_seconds=0.5)
    assert received(server) == 0


def test_a_schema_the_api_refuses_is_permanent_after_one_call(waits: Waits) -> None:
    with answering(
        400,
        b'{"error": {"message": "Invalid schema for response_format", "type": "invalid_request_error",'
        b' "param": "text.format.schema", "code": "invalid_json_schema"}}',
    ) as (url, requests):
        with pytest.raises(RequestRefusedError) as refused:
            ask(client_of(url, waits))
        assert refused.value.ids["reason"] == "invalid_json_schema"
        assert isinstance(refused.value, PermanentError)
        assert len(requests) == 1


def test_a_refused_key_asks_for_another(waits: Waits) -> None:
    with answering(
        401, b'{"error": {"message": "no", "type": "invalid_request_error", "code": "invalid_api_key"}}'
    ) as (
        url,
        requests,
    ):
        with pytest.raises(RequestRefusedError, match="secrets set"):
            ask(client_of(url, waits))
        assert len(requests) == 1


def test_the_request_id_is_sent_along_and_one_that_is_no_header_is_left_out(waits: Waits) -> None:
    with answering(503, b"{}") as (url, requests):
        llm = client_of(url, waits)
        for request_id in ("req-77", "two\r\nlines"):
            with request_context(request_id), pytest.raises(DependencyError):
                ask(llm)
    assert b"x-client-request-id: req-77\r\n" in requests[0].lower()
    assert all(b"x-client-request-id" not in request.lower() for request in requests[3:])


@pytest.mark.parametrize("body", [b"<html>maintenance</html>", b"{}", b"[]", b"null", b'{"output": [1]}', b'"text"'])
def test_an_answer_of_another_shape_is_a_transient_fault(waits: Waits, body: bytes) -> None:
    with answering(200, body) as (url, _), pytest.raises(DependencyError):
        ask(client_of(url, waits))


class answering:  # noqa: N801  (used as a function)
    """A server that answers everything with one response."""

    def __init__(self, status: int, body: bytes) -> None:
        self._response = (
            b"HTTP/1.1 %d X\r\ncontent-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n"
            % (status, len(body))
        ) + body
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.requests: list[bytes] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> tuple[str, list[bytes]]:
        self._thread.start()
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}/v1", self.requests

    def __exit__(self, *_: object) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection:
                self.requests.append(connection.recv(65_536))
                connection.sendall(self._response)


def test_embeddings_come_in_the_order_of_the_texts(llm: OpenAILanguageModel) -> None:
    embeddings = llm.embed(["one", "two", "one"], model="text-embedding-3-small", timeout_seconds=30)
    assert len(embeddings.vectors) == 3
    assert embeddings.vectors[0] == embeddings.vectors[2] != embeddings.vectors[1]
    assert embeddings.usage.input_tokens > 0
    assert embeddings.cost_micro_usd is not None
