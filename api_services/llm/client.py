"""The language model behind a small interface: structured answers and embeddings, with typed errors and bounded time.

The SDK is imported on the first call. Its own retries are off: what is repeated here is bounded by the caller's time.
"""

import email.utils
import logging
import random
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypedDict, TypeVar

from pydantic import ValidationError

from api_services.errors import (
    AppError,
    DependencyError,
    PermanentError,
    QuotaExhaustedError,
    RateLimitedError,
    TransientError,
)
from api_services.llm.costs import TokenUsage, cost_micro_usd
from api_services.llm.schemas import StructuredOutput, strict_schema
from api_services.request_context import current_request_id
from api_services.settings import OpenAISettings
from api_services.tracing import Tracer

if TYPE_CHECKING:
    import openai
    from openai.types.responses import Response

T = TypeVar("T", bound=StructuredOutput)
R = TypeVar("R")

CALLS: Final = 3
"""Tries of one request within the caller's time: most rate limits and lost connections are soon over."""
MAX_WAIT_SECONDS: Final = 20.0
"""A longer Retry-After is left to the queue: waiting here would hold a function and pay for it."""
MIN_CALL_SECONDS: Final = 1.0
CONNECT_TIMEOUT_SECONDS: Final = 5.0
REFUSAL_MAX_CHARACTERS: Final = 500
MAX_OUTPUT_CHARACTERS: Final = 1_000_000

_HEADER_SAFE = re.compile(r"[\x21-\x7e]{1,128}")

logger = logging.getLogger(__name__)


class ChatMessage(TypedDict):
    """One message of a prompt."""

    role: Literal["system", "user"]
    content: str


class RefusedAnswerError(PermanentError):
    """The model declined; `text` says how, `usage` what that cost."""

    code = "refused"

    def __init__(self, text: str, usage: TokenUsage) -> None:
        super().__init__("The model refused to answer")
        self.text = text[:REFUSAL_MAX_CHARACTERS]
        self.usage = usage


class TruncatedAnswerError(PermanentError):
    """The answer did not fit into the tokens it was given."""

    code = "truncated"

    def __init__(self, usage: TokenUsage) -> None:
        super().__init__("The model's answer was cut off; give it more room")
        self.usage = usage


class MalformedAnswerError(TransientError):
    """The answer is not what the schema says; another try may give a good one."""

    code = "malformed_answer"

    def __init__(self, usage: TokenUsage) -> None:
        super().__init__("The model's answer does not fit its schema")
        self.usage = usage


class RequestRefusedError(PermanentError):
    """The API finds the request itself wrong (its schema, model or size), or the key: a human must act."""

    code = "llm_request_refused"


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """A parsed answer, its text as it came, and what it cost; no cost for a model whose price is not known."""

    value: T
    text: str
    model: str
    usage: TokenUsage
    cost_micro_usd: int | None


@dataclass(frozen=True, slots=True)
class Embeddings:
    """One vector for each text, in order."""

    vectors: list[list[float]]
    model: str
    usage: TokenUsage
    cost_micro_usd: int | None


class LanguageModel(ABC):
    """What services use. Raises `RateLimitedError` and `DependencyError` (transient), `QuotaExhaustedError` and
    `RequestRefusedError` (permanent), all within `timeout_seconds`."""

    @abstractmethod
    def structured(
        self,
        response_model: type[T],
        messages: Sequence[ChatMessage],
        *,
        model: str,
        name: str,
        max_output_tokens: int,
        timeout_seconds: float,
    ) -> Answer[T]:
        """An answer that fits `response_model`; `name` names the call in traces.

        Also raises `RefusedAnswerError`, `TruncatedAnswerError` and `MalformedAnswerError`.
        """

    @abstractmethod
    def embed(self, texts: Sequence[str], *, model: str, timeout_seconds: float) -> Embeddings:
        """A vector for each text; texts must not be empty."""


class OpenAILanguageModel(LanguageModel):
    """The OpenAI API, or a server of the same API at `openai_base_url`. `calls` is 1 where the caller repeats."""

    def __init__(
        self,
        settings: OpenAISettings,
        tracer: Tracer,
        *,
        calls: int = CALLS,
        sleep: Callable[[float], object] = time.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._settings = settings
        self._tracer = tracer
        self._calls = calls
        self._sleep = sleep
        self._jitter = jitter
        self._sdk_client: openai.OpenAI | None = None

    def structured(
        self,
        response_model: type[T],
        messages: Sequence[ChatMessage],
        *,
        model: str,
        name: str,
        max_output_tokens: int,
        timeout_seconds: float,
    ) -> Answer[T]:
        sent: Any = list(messages)
        text_format: Any = {
            "format": {
                "type": "json_schema",
                "name": response_model.__name__,
                "schema": strict_schema(response_model),
                "strict": True,
            }
        }

        def call(timeout: Any) -> Answer[T]:
            response = self._client().responses.create(
                model=model,
                input=sent,
                text=text_format,
                max_output_tokens=max_output_tokens,
                store=False,
                timeout=timeout,
                extra_headers=_headers(),
            )
            return _answer(response, response_model)

        with self._tracer.generation(name, model=model, messages=messages) as trace:
            answer = self._call(call, timeout_seconds)
            trace.answered(answer.text, answer.usage, answer.cost_micro_usd)
            return answer

    def embed(self, texts: Sequence[str], *, model: str, timeout_seconds: float) -> Embeddings:
        def call(timeout: Any) -> Embeddings:
            response = self._client().embeddings.create(
                model=model, input=list(texts), timeout=timeout, extra_headers=_headers()
            )
            usage = TokenUsage(input_tokens=response.usage.prompt_tokens)
            ordered = sorted(response.data, key=lambda item: item.index)
            if [item.index for item in ordered] != list(range(len(texts))):
                raise DependencyError("The API did not answer with one vector for each text", code="malformed_answer")
            return Embeddings([item.embedding for item in ordered], model, usage, cost_micro_usd(model, usage))

        return self._call(call, timeout_seconds)

    def _client(self) -> "openai.OpenAI":
        if self._sdk_client is None:
            import openai

            self._sdk_client = openai.OpenAI(
                api_key=self._settings.openai_api_key.get_secret_value(),
                base_url=self._settings.openai_base_url,
                max_retries=0,
            )
        return self._sdk_client

    def _call(self, call: Callable[[Any], R], timeout_seconds: float) -> R:
        """`call` with what is left of the time; again after a fault that may soon be over, if there is time."""
        deadline = time.monotonic() + timeout_seconds
        attempt = 1
        while True:
            try:
                return _translated(call, deadline - time.monotonic())
            except (RateLimitedError, DependencyError) as exc:
                wait = self._wait_seconds(exc, attempt)
                if attempt == self._calls or wait is None or time.monotonic() + wait + MIN_CALL_SECONDS > deadline:
                    raise
                logger.warning("llm.retried", extra={"code": exc.code, "waitSeconds": round(wait, 2)})
            self._sleep(wait)
            attempt += 1

    def _wait_seconds(self, error: TransientError, attempt: int) -> float | None:
        """How long to wait before the next try; none where the queue should wait instead."""
        if error.code == "llm_timeout":
            return None
        wait = error.retry_after_seconds
        if wait is None:
            wait = 2.0 ** (attempt - 1) * (0.5 + self._jitter())
        return wait if wait <= MAX_WAIT_SECONDS else None


def _translated(call: Callable[[Any], R], timeout_seconds: float) -> R:
    if timeout_seconds < MIN_CALL_SECONDS:
        raise DependencyError("No time is left to ask the model", code="llm_timeout")
    import openai

    connect = min(CONNECT_TIMEOUT_SECONDS, timeout_seconds / 3)
    try:
        return call(openai.Timeout(timeout_seconds - connect, connect=connect))
    except openai.APITimeoutError as exc:
        raise DependencyError("The model did not answer in time", code="llm_timeout") from exc
    except openai.APIStatusError as exc:
        raise _status_error(exc) from exc
    except (ValueError, AttributeError, TypeError) as exc:
        # The SDK builds its objects from whatever came, unchecked.
        raise DependencyError("The model's server answered in another shape", code="llm_unavailable") from exc
    except openai.OpenAIError as exc:
        raise DependencyError(f"The model could not be reached ({type(exc).__name__})", code="llm_unavailable") from exc


def _status_error(error: "openai.APIStatusError") -> AppError:
    status = error.status_code
    code = error.code or error.type or str(status)
    if status == 429 and "insufficient_quota" in (error.code, error.type):
        return QuotaExhaustedError("The OpenAI account has no quota left; add credit, then redrive the queue")
    retry_after = _retry_after_seconds(error.response.headers)
    if status == 429:
        return RateLimitedError("The model is rate limited", retry_after_seconds=retry_after)
    if status in (401, 403):
        return RequestRefusedError(
            "OpenAI refuses the key; set a valid one with `./sophia secrets set`", code="llm_unauthorized"
        )
    if status in (408, 409) or status >= 500:
        return DependencyError(
            f"The model's server answered {status}", code="llm_unavailable", retry_after_seconds=retry_after
        )
    return RequestRefusedError(f"The API refuses the request: {code}", reason=code)


def _retry_after_seconds(headers: Any) -> float | None:
    """Retry-After in its three forms; none when there is no sensible one."""
    try:
        if headers.get("retry-after-ms"):
            seconds = float(headers["retry-after-ms"]) / 1000
        elif not headers.get("retry-after"):
            return None
        elif re.fullmatch(r"[0-9.]{1,12}", headers["retry-after"]):
            seconds = float(headers["retry-after"])
        else:
            moment = email.utils.parsedate_to_datetime(headers["retry-after"])
            seconds = (moment - datetime.now(UTC)).total_seconds()
    except (ValueError, TypeError):
        return None
    return max(0.0, seconds) if seconds < 86_400 else None


def _headers() -> dict[str, str]:
    """Our request id under the name OpenAI keeps in its logs for support."""
    request_id = current_request_id()
    return {"X-Client-Request-Id": request_id} if request_id and _HEADER_SAFE.fullmatch(request_id) else {}


def _answer(response: "Response", response_model: type[T]) -> Answer[T]:
    usage = _usage(response)
    refusals = [
        part.refusal
        for item in response.output
        if item.type == "message"
        for part in item.content
        if part.type == "refusal"
    ]
    if refusals:
        raise RefusedAnswerError(refusals[0], usage)
    if response.status == "incomplete":
        reason = response.incomplete_details.reason if response.incomplete_details else None
        if reason == "content_filter":
            raise RefusedAnswerError("Stopped by the provider's content filter", usage)
        raise TruncatedAnswerError(usage)
    if response.status not in (None, "completed"):
        raise DependencyError(f"The model ended with status {response.status}", code="llm_unavailable")
    text = response.output_text
    if len(text) > MAX_OUTPUT_CHARACTERS:
        raise MalformedAnswerError(usage)
    try:
        value = response_model.model_validate_json(text)
    except ValidationError as exc:
        raise MalformedAnswerError(usage) from exc
    return Answer(value, text, response.model, usage, cost_micro_usd(response.model, usage))


def _usage(response: "Response") -> TokenUsage:
    if response.usage is None:
        return TokenUsage()
    return TokenUsage(
        input_tokens=response.usage.input_tokens,
        cached_input_tokens=response.usage.input_tokens_details.cached_tokens,
        output_tokens=response.usage.output_tokens,
    )
