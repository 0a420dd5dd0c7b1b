"""Tracing is a by-product: it never fails the work, and never waits long."""

import time
from typing import Any

import pytest
from pydantic import SecretStr

from api_services.llm.costs import TokenUsage
from api_services.settings import LangfuseSettings
from api_services.tracing import LangfuseTracer, NoTracer, tracer_for

SETTINGS = LangfuseSettings(
    langfuse_public_key="pk-1", langfuse_secret_key=SecretStr("sk-1"), langfuse_base_url="http://127.0.0.1:9"
)


class BrokenTracer(LangfuseTracer):
    """Its SDK cannot even be made."""

    def _langfuse(self) -> Any:
        raise RuntimeError("no SDK")


class SlowClient:
    """Its flush takes longer than anyone waits."""

    def flush(self) -> None:
        time.sleep(1)


class SlowTracer(LangfuseTracer):
    def __init__(self, settings: LangfuseSettings) -> None:
        super().__init__(settings)
        self._client: Any = SlowClient()


def test_without_both_keys_nothing_is_traced() -> None:
    assert isinstance(tracer_for(LangfuseSettings()), NoTracer)
    without_secret = LangfuseSettings(langfuse_public_key="pk-1", langfuse_base_url="http://127.0.0.1:9")
    assert isinstance(tracer_for(without_secret), NoTracer)
    assert isinstance(tracer_for(SETTINGS), LangfuseTracer)


def test_a_trace_that_cannot_be_made_is_logged_and_the_work_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    tracer = BrokenTracer(SETTINGS)
    with tracer.generation("report", model="gpt-5-mini", messages=[]) as trace:
        trace.answered("text", TokenUsage(1, 0, 1), 3)
    tracer.flush(1)
    assert [record.message for record in caplog.records] == ["tracing.failed"]


def test_an_error_of_the_work_passes_through_a_broken_trace() -> None:
    with (
        pytest.raises(KeyError, match="the work's own"),
        BrokenTracer(SETTINGS).generation("report", model="gpt-5-mini", messages=[]),
    ):
        raise KeyError("the work's own")


def test_sending_traces_is_waited_for_only_so_long(caplog: pytest.LogCaptureFixture) -> None:
    started = time.monotonic()
    SlowTracer(SETTINGS).flush(0.05)
    assert time.monotonic() - started < 0.8
    assert [record.message for record in caplog.records] == ["tracing.flush_timed_out"]
