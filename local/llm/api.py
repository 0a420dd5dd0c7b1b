"""The three endpoints as functions from a request body to a reply; no socket, no clock."""

import time
from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from local.llm.answers import answer, prose
from local.llm.embeddings import (
    MAX_INPUT_TOKENS,
    MAX_INPUTS,
    MAX_REQUEST_TOKENS,
    MODEL_DIMENSIONS,
    embed,
    to_base64,
)
from local.llm.faults import CallKind, Fault
from local.llm.schemas import strict_fault
from local.llm.text import count_tokens, digest, material

REFUSAL: Final = "I'm sorry, I can't help with that."

Body = Mapping[str, Any]


class RefusedRequestError(Exception):
    """The request is answered with an error, in OpenAI's shape."""

    def __init__(
        self, status: int, message: str, *, kind: str = "invalid_request_error", code: str | None, param: str | None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.body = {"error": {"message": message, "type": kind, "param": param, "code": code}}


@dataclass(frozen=True, slots=True)
class Call:
    """A valid request: `contents` are the texts it is about (for embeddings one per input)."""

    kind: CallKind
    model: str
    contents: tuple[str, ...]
    input_tokens: int
    schema: Mapping[str, Any] | None = None
    max_output_tokens: int | None = None
    dimensions: int = 0
    base64: bool = False

    @property
    def hashes(self) -> list[str]:
        """SHA-256 of each content: of an input, or of the prompt's longest `<tag>` body (else the whole prompt)."""
        return [digest(text) for text in self.contents]


@dataclass(frozen=True, slots=True)
class Reply:
    """What goes back, and what it cost."""

    body: Mapping[str, Any]
    output_tokens: int


def parse(kind: CallKind, body: Body) -> Call:
    """Check a request as the real API does; raises `RefusedRequestError`."""
    model = body.get("model")
    if not isinstance(model, str) or not model:
        raise _bad("you must provide a model parameter", "model")
    if (kind == "embeddings") != (model in MODEL_DIMENSIONS):
        message = f"The model `{model}` does not exist or cannot be used with this endpoint."
        raise RefusedRequestError(404, message, code="model_not_found", param="model")
    if kind == "embeddings":
        return _parse_embeddings(model, body)
    if body.get("stream"):
        raise _bad("This server does not stream.", "stream")
    return _parse_chat(model, body) if kind == "chat" else _parse_responses(model, body)


def reply(call: Call, fault: Fault | None) -> Reply:
    """The answer to `call`; `fault` may turn it into a refusal, cut it short or spoil it."""
    if call.kind == "embeddings":
        return _embeddings_reply(call)
    prompt = call.contents[0]
    text = answer(call.schema, prompt) if call.schema is not None else prose(prompt)
    refusal = REFUSAL if fault is not None and fault.kind == "refusal" else None
    if fault is not None and fault.kind == "invalid_json":
        text = "Here is what you asked for: " + text[: len(text) // 2]
    tokens = count_tokens(refusal or text)
    room = call.max_output_tokens
    truncated = refusal is None and room is not None and tokens > room
    if fault is not None and fault.kind == "truncated":
        truncated = True
    if truncated:
        kept = min(tokens // 2, room or tokens)
        text, tokens = text[: len(text) * kept // max(1, tokens)], room or kept
    build = _chat_body if call.kind == "chat" else _responses_body
    return Reply(build(call, text, refusal, tokens, truncated=truncated), tokens)


def _bad(message: str, param: str | None, code: str | None = None) -> RefusedRequestError:
    return RefusedRequestError(400, message, code=code, param=param)


def _parse_chat(model: str, body: Body) -> Call:
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise _bad("Invalid type for 'messages': expected a non-empty array of objects.", "messages")
    form: Body = body.get("response_format") or {"type": "text"}
    schema: Mapping[str, Any] | None = None
    if form.get("type") == "json_schema":
        described: Body = form.get("json_schema") or {}
        schema = _checked_schema(described, "response_format", "response_format")
    limit = body.get("max_completion_tokens", body.get("max_tokens"))
    return _text_call("chat", model, cast(list[Any], messages), schema, limit, "messages")


def _parse_responses(model: str, body: Body) -> Call:
    given = body.get("input")
    items: list[Any] = [{"role": "user", "content": given}] if isinstance(given, str) else (given or [])
    if not items:
        raise _bad("Missing required parameter: 'input'.", "input")
    if body.get("instructions"):
        items = [{"role": "system", "content": body["instructions"]}, *items]
    text: Body = body.get("text") or {}
    form: Body = text.get("format") or {"type": "text"}
    schema = None
    if form.get("type") == "json_schema":
        schema = _checked_schema(form, "text.format", "text.format.schema")
    return _text_call("responses", model, items, schema, body.get("max_output_tokens"), "input")


def _checked_schema(described: Mapping[str, Any], what: str, param: str) -> Mapping[str, Any]:
    name = described.get("name")
    if not isinstance(name, str) or not name:
        raise _bad(f"Missing required parameter: '{what}.name'.", f"{what}.name")
    schema = described.get("schema")
    if not isinstance(schema, Mapping):
        raise _bad(f"Missing required parameter: '{what}.schema'.", param)
    if described.get("strict"):
        fault = strict_fault(cast(object, schema))
        if fault is not None:
            raise _bad(f"Invalid schema for response_format '{name}': {fault}", param, "invalid_json_schema")
    return cast(Mapping[str, Any], schema)


def _text_call(
    kind: CallKind, model: str, messages: list[Any], schema: Mapping[str, Any] | None, limit: Any, param: str
) -> Call:
    texts: list[tuple[str, str]] = []
    for message in messages:
        if not isinstance(message, Mapping) or not isinstance(cast(Body, message).get("role"), str):
            raise _bad(f"Invalid '{param}': each item is an object with a role and content.", param)
        texts.append((cast(Body, message)["role"], _text_of(cast(Body, message).get("content"), param)))
    if limit is not None and (not isinstance(limit, int) or limit < 1):
        raise _bad("Invalid limit of output tokens: expected a positive integer.", "max_output_tokens")
    prompt = next((text for role, text in reversed(texts) if role == "user"), texts[-1][1])
    tokens = sum(count_tokens(text) + 4 for _, text in texts)
    return Call(kind, model, (material(prompt),), tokens, schema, limit)


def _text_of(content: Any, param: str) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = [cast(Body, part) for part in cast(list[Any], content) if isinstance(part, Mapping)]
        if len(parts) == len(cast(list[Any], content)) and all(isinstance(part.get("text"), str) for part in parts):
            return "\n".join(part["text"] for part in parts)
    raise _bad(f"Invalid '{param}': content is a string or a list of text parts.", param)


def _parse_embeddings(model: str, body: Body) -> Call:
    given: Any = body.get("input")
    inputs = [given] if isinstance(given, str) or _is_tokens(given) else cast(list[Any], given)
    if not isinstance(given, str | list) or not inputs:
        raise _bad("'input' is a required property: a string, an array of strings or of tokens.", "input")
    if len(inputs) > MAX_INPUTS:
        raise _bad(f"'$.input' is invalid: at most {MAX_INPUTS} inputs, got {len(inputs)}.", "input")
    texts: list[str] = []
    total = 0
    for index, one in enumerate(inputs):
        text, tokens = _input_text(one, index)
        if tokens > MAX_INPUT_TOKENS:
            message = (
                f"Invalid 'input[{index}]': maximum input length is {MAX_INPUT_TOKENS} tokens, got about {tokens}."
            )
            raise _bad(message, "input")
        texts.append(text)
        total += tokens
    if total > MAX_REQUEST_TOKENS:
        message = f"Requested {total} tokens, max {MAX_REQUEST_TOKENS} tokens per request."
        raise RefusedRequestError(
            400, message, kind="max_tokens_per_request", code="max_tokens_per_request", param=None
        )
    most = MODEL_DIMENSIONS[model]
    dimensions = body.get("dimensions", most)
    if not isinstance(dimensions, int) or not 1 <= dimensions <= most:
        raise _bad(f"Invalid value for 'dimensions': expected 1 to {most}.", "dimensions")
    return Call(
        "embeddings",
        model,
        tuple(texts),
        total,
        dimensions=dimensions,
        base64=body.get("encoding_format") == "base64",
    )


def _input_text(one: Any, index: int) -> tuple[str, int]:
    if isinstance(one, str):
        if not one.strip():
            raise _bad(f"Invalid 'input[{index}]': input cannot be an empty string.", "input")
        return one, count_tokens(one)
    if _is_tokens(one):
        return " ".join(f"token{token}" for token in one), len(one)
    raise _bad(f"Invalid 'input[{index}]': expected a string or an array of tokens.", "input")


def _is_tokens(value: object) -> bool:
    if not isinstance(value, list) or not value:
        return False
    return all(isinstance(one, int) for one in cast(list[object], value))


def _embeddings_reply(call: Call) -> Reply:
    def encoded(vector: "array[float]") -> str | list[float]:
        return to_base64(vector) if call.base64 else vector.tolist()

    data = [
        {"object": "embedding", "index": index, "embedding": encoded(embed(text, call.dimensions))}
        for index, text in enumerate(call.contents)
    ]
    usage = {"prompt_tokens": call.input_tokens, "total_tokens": call.input_tokens}
    return Reply({"object": "list", "data": data, "model": call.model, "usage": usage}, 0)


def _chat_body(call: Call, text: str, refusal: str | None, tokens: int, *, truncated: bool) -> Mapping[str, Any]:
    message: Body = {"role": "assistant", "content": None if refusal else text, "refusal": refusal, "annotations": []}
    return {
        "id": f"chatcmpl-{digest(text)[:24]}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": call.model,
        "choices": [
            {"index": 0, "message": message, "logprobs": None, "finish_reason": "length" if truncated else "stop"}
        ],
        "usage": {
            "prompt_tokens": call.input_tokens,
            "completion_tokens": tokens,
            "total_tokens": call.input_tokens + tokens,
            "prompt_tokens_details": {"cached_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 0},
        },
    }


def _responses_body(call: Call, text: str, refusal: str | None, tokens: int, *, truncated: bool) -> Mapping[str, Any]:
    content: Body = (
        {"type": "refusal", "refusal": refusal}
        if refusal
        else {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    )
    status = "incomplete" if truncated else "completed"
    return {
        "id": f"resp_{digest(text)[:24]}",
        "object": "response",
        "created_at": int(time.time()),
        "status": status,
        "error": None,
        "incomplete_details": {"reason": "max_output_tokens"} if truncated else None,
        "instructions": None,
        "metadata": {},
        "model": call.model,
        "output": [
            {
                "type": "message",
                "id": f"msg_{digest(text)[24:48]}",
                "status": status,
                "role": "assistant",
                "content": [content],
            }
        ],
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": {
            "input_tokens": call.input_tokens,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": call.input_tokens + tokens,
        },
    }
