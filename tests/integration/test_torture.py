"""A small run of the crash harness; `./sophia torture` is the large one."""

from pathlib import Path

import pytest

from benchmarks.torture.run import torture
from toolchain.progress import Progress

pytestmark = pytest.mark.integration


def test_a_small_run_with_kills_ends_with_everything_settled_and_reported(tmp_path: Path) -> None:
    outcome = torture(40, seed=11, home=tmp_path, timeout_seconds=240, progress=Progress())
    assert {check.name: (check.expected, check.found) for check in outcome.checks if not check.holds} == {}
    assert outcome.counts.consumers_killed > 0
    assert outcome.counts.mongod_killed == 1
    assert sum(outcome.llm_calls["faults"].values()) > 0
