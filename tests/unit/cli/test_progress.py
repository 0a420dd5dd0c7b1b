"""Progress is seen on a terminal and in a log."""

import io

import pytest
from rich.console import Console

from cli import progress
from cli.progress import DrawnProgress


def test_a_log_hears_of_long_work_now_and_then_and_of_each_step(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    out = io.StringIO()
    with DrawnProgress(Console(file=out)) as drawn:
        for second in range(0, 40, 5):
            now[0] = second
            drawn.note(f"building: {second} s")
        drawn.took("build", 40)
    assert [line.strip() for line in out.getvalue().splitlines() if line.strip()] == [
        "building: 15 s",
        "building: 30 s",
        "done  build                      40.0 s",
    ]
