"""The index's writer is never held while anything else is waited for."""

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from api_services.documents.errors import IndexBusyError
from api_services.documents.index.driver import Row, Statement
from api_services.documents.index.libsql import LibsqlFileDriver
from api_services.documents.index.sql import LibsqlSearchIndex
from api_services.documents.ingest import IngestOutcome
from api_services.documents.models import DocumentState
from tests.integration.api_services.documents.test_index import HOLD
from tests.integration.api_services.documents.world import World, prose

pytestmark = pytest.mark.integration


class WatchedDriver(LibsqlFileDriver):
    """Notes how many calls the model had received when a transaction began and when it ended."""

    def __init__(self, path: Path, world: World) -> None:
        super().__init__(path)
        self.world = world
        self.during: list[int] = []

    def _transaction(self, statements: Sequence[Statement]) -> list[list[Row]]:
        before = sum(self.world.received().values())
        rows = super()._transaction(statements)
        counted = self.world.llm.calls.counted()
        self.during.append(sum(counted["received"].values()) - before + counted["inFlight"])
        return rows


@pytest.fixture
def held_file(world: World) -> Iterator[None]:
    """Another process holds the writer for a minute."""
    process = subprocess.Popen(  # noqa: S603
        [sys.executable, "-c", HOLD, str(world.index_path), "60"], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    yield
    process.kill()
    process.wait()
    process.stdout.close()


def test_no_call_goes_out_while_a_transaction_is_open(world: World) -> None:
    driver = WatchedDriver(world.index_path, world)
    index = LibsqlSearchIndex(driver, model="text-embedding-3-small", dimension=1536)
    world.approve("guide", prose(30))
    assert world.deliver("guide", tools=world.with_tools(index=index)) is IngestOutcome.INDEXED
    assert driver.during
    assert set(driver.during) == {0}
    index.close()


def test_a_held_writer_with_little_time_left_fails_the_record_in_time_and_keeps_what_was_paid_for(
    world: World, held_file: None
) -> None:
    world.approve("guide", prose(3))
    ends = time.monotonic() + 10
    tools = world.with_tools(reserve_seconds=1.0)
    with pytest.raises(IndexBusyError):
        world.deliver("guide", remaining_seconds=lambda: ends - time.monotonic(), tools=tools)
    assert time.monotonic() < ends
    assert world.index.entry("guide") is None
    document = world.documents.get("guide")
    assert document.state is DocumentState.QUEUED
    assert document.failure is not None
    assert document.failure.code == "index_busy"
    assert world.calls()["responses"] == 3
