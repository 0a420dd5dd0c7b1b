"""A trace that `verify` sends with the real SDK is found again, or the reason why not is said."""

from collections.abc import Iterator

import pytest
from pydantic import SecretStr

from api_services.settings import LangfuseSettings
from cli.verify.tracing import check_trace
from tests.support.langfuse_server import LangfuseServer, langfuse_server

pytestmark = pytest.mark.integration


@pytest.fixture
def langfuse() -> Iterator[LangfuseServer]:
    with langfuse_server() as server:
        yield server


def settings_of(langfuse: LangfuseServer) -> LangfuseSettings:
    return LangfuseSettings(
        langfuse_public_key="pk-verify",
        langfuse_secret_key=SecretStr("sk-verify"),
        langfuse_base_url=langfuse.url,
    )


def test_a_trace_that_arrives_is_read_back(langfuse: LangfuseServer) -> None:
    ok, detail = check_trace(settings_of(langfuse))
    assert (ok, len(langfuse.received)) == (True, 1), detail


def test_keys_of_another_region_are_told_from_a_trace_that_is_late(langfuse: LangfuseServer) -> None:
    langfuse.shows, langfuse.refuses = False, 401
    ok, detail = check_trace(settings_of(langfuse))
    assert not ok
    assert "refuses the keys" in detail
    assert "sk-verify" not in detail


def test_a_trace_that_is_never_shown_is_a_fault_that_names_the_variable(langfuse: LangfuseServer) -> None:
    langfuse.shows = False
    ok, detail = check_trace(settings_of(langfuse), wait_seconds=0.2)
    assert not ok
    assert "LANGFUSE_BASE_URL" in detail
