"""The demonstration as a person runs it: every promise holds, the second time too, and nothing is left behind."""

import json
from pathlib import Path

import pytest

from local import processes
from tests.e2e.conftest import Sophia

pytestmark = pytest.mark.e2e


def test_the_demonstration_holds_every_promise_twice_and_leaves_no_process(tmp_path: Path) -> None:
    sophia = Sophia(tmp_path)
    first = json.loads(sophia.succeeds("demo", "--json", "--keep"))
    assert first["ok"] is True
    assert first["documents"]["documents"] > 100
    second = json.loads(sophia.succeeds("demo", "--json", "--only", "interviews"))
    checks = second["interviews"]["checks"]
    assert len(checks) == 11
    assert set(checks.values()) == {None}
    assert second["interviews"]["run"] != first["interviews"]["run"]
    assert second["kept"] is True
    sophia.succeeds("down")
    assert processes.marked_with(tmp_path) == []
