"""Traces of language model calls in Langfuse. A trace that cannot be made is logged, and never fails the work."""

import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from typing_extensions import override

from api_services.llm.costs import TokenUsage
from api_services.request_context import current_request_id, new_request_id
from api_services.settings import LangfuseSettings

if TYPE_CHECKING:
    from langfuse import Langfuse, LangfuseGeneration

T = TypeVar("T")

logger = logging.getLogger(__name__)

EXPORT_TIMEOUT_SECONDS = 5


class GenerationTrace:
    """One call being traced; this one keeps nothing."""

    def answered(self, output: str, usage: TokenUsage, cost_micro_usd: int | None) -> None:
        """Add what came back."""


class Tracer(ABC):
    """Traces calls under the request id in force."""

    @abstractmethod
    def generation(
        self, name: str, *, model: str, messages: Sequence[Mapping[str, Any]]
    ) -> AbstractContextManager[GenerationTrace]:
        """A context around one call; an error that passes through is traced as such."""

    @abstractmethod
    def flush(self, timeout_seconds: float) -> None:
        """Send what is buffered, waiting at most that long: a function may be frozen after it returns."""


class NoTracer(Tracer):
    """Where tracing is not configured."""

    @override
    @contextmanager
    def generation(self, name: str, *, model: str, messages: Sequence[Mapping[str, Any]]) -> Generator[GenerationTrace]:
        yield GenerationTrace()

    def flush(self, timeout_seconds: float) -> None:
        """Nothing is buffered."""


class LangfuseTracer(Tracer):
    """Traces to the configured Langfuse; the SDK is imported with the first trace."""

    def __init__(self, settings: LangfuseSettings) -> None:
        self._settings = settings
        self._client: Langfuse | None = None

    @contextmanager
    def generation(self, name: str, *, model: str, messages: Sequence[Mapping[str, Any]]) -> Generator[GenerationTrace]:
        trace = _LangfuseTrace(self._begun(name, model, messages))
        try:
            yield trace
        except Exception as exc:
            trace.failed(exc)
            raise
        finally:
            trace.end()

    def flush(self, timeout_seconds: float) -> None:
        client = self._client
        if client is None:
            return
        # The SDK's flush has no bound of its own. A thread left behind ends with its request's timeout.
        flushing = threading.Thread(target=_quietly, args=(client.flush,), name="langfuse-flush", daemon=True)
        flushing.start()
        flushing.join(max(0.0, timeout_seconds))
        if flushing.is_alive():
            logger.warning("tracing.flush_timed_out", extra={"timeoutSeconds": timeout_seconds})

    def _begun(self, name: str, model: str, messages: Sequence[Mapping[str, Any]]) -> "LangfuseGeneration | None":
        request_id = current_request_id() or new_request_id()

        def begin() -> "LangfuseGeneration":
            client = self._langfuse()
            return client.start_observation(
                trace_context={"trace_id": client.create_trace_id(seed=request_id)},
                name=name,
                as_type="generation",
                model=model,
                input=list(messages),
                metadata={"requestId": request_id},
            )

        return _quietly(begin)

    def _langfuse(self) -> "Langfuse":
        if self._client is None:
            from langfuse import Langfuse
            from opentelemetry.sdk.trace import TracerProvider

            secret = self._settings.langfuse_secret_key
            self._client = Langfuse(
                public_key=self._settings.langfuse_public_key,
                secret_key=secret.get_secret_value() if secret else None,
                base_url=self._settings.base_url,
                timeout=EXPORT_TIMEOUT_SECONDS,
                # Our own, so that nothing else of the process is exported.
                tracer_provider=TracerProvider(),
            )
        return self._client


class _LangfuseTrace(GenerationTrace):
    def __init__(self, generation: "LangfuseGeneration | None") -> None:
        self._generation = generation

    def answered(self, output: str, usage: TokenUsage, cost_micro_usd: int | None) -> None:
        generation = self._generation
        if generation is None:
            return
        usage_details = {"input": usage.input_tokens, "output": usage.output_tokens, "total": usage.total_tokens}
        cost_details = None if cost_micro_usd is None else {"total": cost_micro_usd / 1_000_000}
        _quietly(lambda: generation.update(output=output, usage_details=usage_details, cost_details=cost_details))

    def failed(self, error: Exception) -> None:
        """Mark the call as failed, with the error's class only."""
        generation = self._generation
        if generation is not None:
            _quietly(lambda: generation.update(level="ERROR", status_message=type(error).__name__))

    def end(self) -> None:
        if self._generation is not None:
            _quietly(self._generation.end)


def tracer_for(settings: LangfuseSettings) -> Tracer:
    """A tracer to Langfuse where both keys are set, else one that does nothing."""
    configured = settings.langfuse_public_key is not None and settings.langfuse_secret_key is not None
    return LangfuseTracer(settings) if configured else NoTracer()


def _quietly(call: Callable[[], T]) -> T | None:
    """What `call` returns; none, and a log line, when it raises."""
    try:
        return call()
    except Exception as exc:  # noqa: BLE001
        # error-ends-here: a trace is a by-product, and the work it describes goes on.
        logger.warning("tracing.failed", extra={"errorClass": type(exc).__name__})
        return None
