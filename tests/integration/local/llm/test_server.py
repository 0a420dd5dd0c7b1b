"""The local OpenAI server, through OpenAI's own client."""

import json
import math
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import openai
import pytest
from openai import OpenAI
from pydantic import BaseModel, ConfigDict, Field

from local.llm.server import LlmServer

pytestmark = pytest.mark.integration

TRANSCRIPT = """Interviewer: Tell me about a migration you led.
Candidate: I moved a billing service from a monolith to its own deployment over four months. We kept both paths
Candidate: running and compared every invoice for six weeks before we switched anything off.
Interviewer: What went wrong?
Candidate: The currency rounding differed in two places, and nobody had written down which one was right."""


class Competency(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str
    score: int = Field(ge=1, le=5)
    evidence: list[str]


class Report(BaseModel):
    model_config = ConfigDict(extra="forbid")

    summary: str
    overall_score: int = Field(ge=0, le=100)
    note: str | None
    competencies: list[Competency] = Field(min_length=2, max_length=4)


@pytest.fixture(scope="module")
def server() -> Iterator[LlmServer]:
    server = LlmServer().start()
    yield server
    server.stop()


@pytest.fixture
def client(server: LlmServer) -> Iterator[OpenAI]:
    server.faults.clear()
    server.calls.reset()
    with OpenAI(base_url=server.base_url, api_key="sk-local", max_retries=0, timeout=5) as client:
        yield client
    server.faults.clear()


def _control(server: LlmServer, method: str, path: str, **body: Any) -> httpx.Response:
    url = server.base_url.removesuffix("/v1") + "/_control/" + path
    return httpx.request(method, url, json=body or None, timeout=5)


def _report(client: OpenAI, transcript: str = TRANSCRIPT) -> Any:
    return client.responses.parse(
        model="gpt-5-mini",
        instructions="Assess the candidate.",
        input=f"<transcript>\n{transcript}\n</transcript>",
        text_format=Report,
    )


def test_responses_and_chat_give_the_same_report_for_the_same_transcript(client: OpenAI) -> None:
    response = _report(client)
    completion = client.chat.completions.parse(
        model="gpt-5-mini",
        messages=[{"role": "user", "content": f"<transcript>\n{TRANSCRIPT}\n</transcript>"}],
        response_format=Report,
    )
    assert response.output_parsed == completion.choices[0].message.parsed
    assert response.usage.total_tokens > 50
    assert completion.usage is not None


def test_a_report_quotes_the_transcript_and_another_transcript_gets_another_report(client: OpenAI) -> None:
    report: Report = _report(client).output_parsed
    quotes = [quote for competency in report.competencies for quote in competency.evidence]
    assert quotes
    assert all(quote in TRANSCRIPT for quote in quotes)
    assert not any(quote in line for quote in quotes for line in TRANSCRIPT.splitlines() if "Interviewer" in line)
    assert _report(client, TRANSCRIPT.replace("billing", "search")).output_parsed != report


def test_a_schema_with_a_free_form_object_a_default_or_a_missing_required_is_refused(client: OpenAI) -> None:
    closed = {"type": "object", "additionalProperties": False}
    text = {"type": "string"}
    refused: list[dict[str, Any]] = [
        {"type": "object", "properties": {"a": text}, "required": ["a"]},
        {**closed, "properties": {"a": {"type": "object", "additionalProperties": text}}, "required": ["a"]},
        {**closed, "properties": {"a": {**text, "default": ""}}, "required": ["a"]},
        {**closed, "properties": {"a": text, "b": text}, "required": ["a"]},
        {**closed, "properties": {"a": {"type": "array"}}, "required": ["a"]},
        {**closed, "properties": {"a": {"$ref": "#/$defs/A", "description": "x"}}, "required": ["a"]},
    ]
    for schema in refused:
        with pytest.raises(openai.BadRequestError, match="Invalid schema for response_format 'r'") as caught:
            client.responses.create(
                model="gpt-5-mini",
                input="x",
                text={"format": {"type": "json_schema", "name": "r", "schema": schema, "strict": True}},
            )
        assert caught.value.code == "invalid_json_schema"


def test_embeddings_are_unit_vectors_and_near_for_near_texts(client: OpenAI) -> None:
    texts = [
        "How to rotate the database password without downtime",
        "Rotating database passwords with no downtime",
        "Baking sourdough bread at home on a rainy Sunday",
    ]
    answer = client.embeddings.create(model="text-embedding-3-small", input=texts)
    first, second, third = (item.embedding for item in answer.data)
    assert len(first) == 1536
    assert math.isclose(sum(value * value for value in first), 1.0, rel_tol=1e-5)

    def cosine(a: list[float], b: list[float]) -> float:
        return sum(x * y for x, y in zip(a, b, strict=True))

    assert cosine(first, second) > cosine(first, third) + 0.3
    small = client.embeddings.create(model="text-embedding-3-small", input="x", dimensions=64, encoding_format="float")
    assert len(small.data[0].embedding) == 64


@pytest.mark.parametrize("given", ["", "  \n", ["fine", ""], "word " * 9000, []])
def test_blank_and_oversized_embedding_inputs_are_refused(client: OpenAI, given: Any) -> None:
    with pytest.raises(openai.BadRequestError):
        client.embeddings.create(model="text-embedding-3-small", input=given)


def test_a_rate_limit_names_its_delay_and_an_exhausted_quota_is_told_apart(server: LlmServer, client: OpenAI) -> None:
    _control(server, "POST", "faults", kind="rate_limit", count=1, retryAfterSeconds=7)
    _control(server, "POST", "faults", kind="insufficient_quota", count=1)
    with pytest.raises(openai.RateLimitError) as limited:
        _report(client)
    assert limited.value.code == "rate_limit_exceeded"
    assert limited.value.response.headers["retry-after"] == "7"
    with pytest.raises(openai.RateLimitError) as exhausted:
        _report(client)
    assert exhausted.value.code == "insufficient_quota"
    assert _report(client).output_parsed is not None


def test_a_refusal_has_no_content_and_counts_its_tokens(server: LlmServer, client: OpenAI) -> None:
    _control(server, "POST", "faults", kind="refusal", count=2)
    response = _report(client)
    assert response.output[0].content[0].type == "refusal"
    assert response.usage.output_tokens > 0
    completion = client.chat.completions.create(model="gpt-5-mini", messages=[{"role": "user", "content": "x"}])
    assert completion.choices[0].message.refusal
    assert completion.choices[0].message.content is None


def test_a_truncated_answer_says_so_whether_by_fault_or_by_its_limit(server: LlmServer, client: OpenAI) -> None:
    form: Any = {"type": "json_schema", "name": "r", "strict": True, "schema": _strict_schema()}
    limited = client.responses.create(model="gpt-5-mini", input=TRANSCRIPT, max_output_tokens=5, text={"format": form})
    assert limited.status == "incomplete"
    assert limited.incomplete_details is not None
    assert limited.incomplete_details.reason == "max_output_tokens"
    _control(server, "POST", "faults", kind="truncated", count=1)
    cut = client.responses.create(model="gpt-5-mini", input=TRANSCRIPT, text={"format": form})
    assert cut.status == "incomplete"
    with pytest.raises(json.JSONDecodeError):
        json.loads(cut.output_text)


def _strict_schema() -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"summary": {"type": "string"}},
        "required": ["summary"],
        "additionalProperties": False,
    }


def test_a_fault_by_content_strikes_only_what_holds_it(server: LlmServer, client: OpenAI) -> None:
    _control(server, "POST", "faults", kind="server_error", match="sourdough")
    assert client.embeddings.create(model="text-embedding-3-small", input="rye").data
    with pytest.raises(openai.InternalServerError):
        client.embeddings.create(model="text-embedding-3-small", input="sourdough")


def test_a_fault_by_rate_strikes_the_same_calls_for_the_same_seed(server: LlmServer, client: OpenAI) -> None:
    def outcomes() -> list[bool]:
        server.faults.clear()
        _control(server, "POST", "faults", kind="server_error", rate=0.5, seed=11)
        found: list[bool] = []
        for _ in range(12):
            try:
                client.embeddings.create(model="text-embedding-3-small", input="x")
                found.append(True)
            except openai.InternalServerError:
                found.append(False)
        return found

    first = outcomes()
    assert first == outcomes()
    assert set(first) == {True, False}


def test_a_hanging_call_is_let_go_when_the_faults_are_cleared(server: LlmServer, client: OpenAI) -> None:
    _control(server, "POST", "faults", kind="hang")
    with pytest.raises(openai.APITimeoutError):
        client.with_options(timeout=0.2).embeddings.create(model="text-embedding-3-small", input="x")
    threading.Timer(0.2, server.faults.clear).start()
    with pytest.raises(openai.InternalServerError):
        client.embeddings.create(model="text-embedding-3-small", input="x")


def test_calls_are_counted_per_kind_and_content_and_faulty_ones_are_not_paid(server: LlmServer, client: OpenAI) -> None:
    _control(server, "POST", "faults", kind="server_error", count=1)
    with pytest.raises(openai.InternalServerError):
        client.embeddings.create(model="text-embedding-3-small", input=["a b", "c d"])
    for _ in range(2):
        client.embeddings.create(model="text-embedding-3-small", input=["a b", "c d"])
    counted = _control(server, "GET", "calls").json()
    assert counted["received"] == {"embeddings": 3}
    assert counted["answered"] == {"embeddings": 2}
    assert counted["faults"] == {"server_error": 1}
    assert sorted(counted["byContent"]["embeddings"].values()) == [2, 2]
    assert _control(server, "POST", "faults", kind="nonsense").status_code == 400


def test_thirty_two_slow_calls_run_side_by_side(server: LlmServer, client: OpenAI) -> None:
    _control(server, "POST", "latency", seconds=0.3)
    try:
        threads = [
            threading.Thread(
                target=client.embeddings.create, kwargs={"model": "text-embedding-3-small", "input": f"text {number}"}
            )
            for number in range(32)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        _control(server, "POST", "latency", seconds=0)
    assert _control(server, "GET", "calls").json()["mostInFlight"] == 32


def test_a_call_without_a_key_or_with_an_unknown_model_is_refused(server: LlmServer, client: OpenAI) -> None:
    assert httpx.post(f"{server.base_url}/embeddings", json={"input": "x"}).status_code == 401
    with pytest.raises(openai.NotFoundError):
        client.embeddings.create(model="gpt-5-mini", input="x")
