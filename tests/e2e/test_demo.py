"""The demonstration as a person runs it: every promise holds, the second time too, and nothing is left behind."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import Sophia
from toolchain import processes

pytestmark = pytest.mark.e2e


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Sophia]:
    """A stage of this test's own, down at its end however it ends."""
    sophia = Sophia(tmp_path)
    yield sophia
    sophia.succeeds("down")


def test_the_demonstration_holds_every_promise_twice_and_leaves_no_process(alone: Sophia) -> None:
    first = json.loads(alone.succeeds("demo", "--json", "--keep"))
    assert first["ok"] is True
    assert first["documents"]["documents"] > 100
    second = json.loads(alone.succeeds("demo", "--json", "--only", "interviews"))
    checks = second["interviews"]["checks"]
    assert len(checks) == 11
    assert set(checks.values()) == {None}
    assert second["interviews"]["run"] != first["interviews"]["run"]
    assert second["kept"] is True
    alone.succeeds("down")
    assert processes.marked_with(alone.state_dir) == []
