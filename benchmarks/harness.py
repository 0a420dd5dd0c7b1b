"""What a benchmark is: a function that yields rows, each with its floor measured in the same run, side by side."""

import gc
import importlib
import os
import platform
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import median
from typing import Any, Final

from benchmarks.registry import BENCHES, BenchSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One number. `target` bounds the ratio to `floor`, or the value where there is no floor.

    Less is better unless `higher_is_better`; without a target the row informs only.
    """

    name: str
    value: float
    unit: str
    floor: float | None = None
    floor_name: str | None = None
    target: float | None = None
    higher_is_better: bool = False

    @property
    def ratio(self) -> float | None:
        """Value over floor."""
        return self.value / self.floor if self.floor else None

    @property
    def is_met(self) -> bool | None:
        """Whether the target is met; none without a target."""
        if self.target is None:
            return None
        measured = self.value if self.ratio is None else self.ratio
        return measured >= self.target if self.higher_is_better else measured <= self.target

    def as_json(self) -> dict[str, Any]:
        """Everything, in camelCase."""
        return {
            "name": self.name,
            "value": round(self.value, 4),
            "unit": self.unit,
            "floor": None if self.floor is None else round(self.floor, 4),
            "floorName": self.floor_name,
            "ratio": None if self.ratio is None else round(self.ratio, 3),
            "target": self.target,
            "higherIsBetter": self.higher_is_better,
            "met": self.is_met,
        }


Bench = Callable[[bool], Iterable[Row]]
"""`run(quick)`: quick is a size for the test suite, whose numbers only show that the benchmark works."""


class BenchSkippedError(Exception):
    """The benchmark cannot run here; the text says what it needs."""


@dataclass(frozen=True, slots=True)
class BenchResult:
    """The rows of one benchmark, or why there are none."""

    name: str
    rows: tuple[Row, ...]
    skipped: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Everything, in camelCase."""
        return {"bench": self.name, "rows": [row.as_json() for row in self.rows], "skipped": self.skipped}


def chosen(names: Iterable[str]) -> list[BenchSpec]:
    """The named benchmarks, or all; `KeyError` with the known names for one that is not there."""
    known = {bench.name: bench for bench in BENCHES}
    wanted = list(names)
    for name in wanted:
        if name not in known:
            raise KeyError(f"no benchmark '{name}'; there are {', '.join(known)}")
    return [known[name] for name in wanted] if wanted else list(BENCHES)


def run(benches: Iterable[BenchSpec], *, quick: bool) -> Iterator[BenchResult]:
    """Run one after the other."""
    for bench in benches:
        measure: Bench = importlib.import_module(bench.module).run
        try:
            yield BenchResult(bench.name, tuple(measure(quick)))
        except BenchSkippedError as reason:
            yield BenchResult(bench.name, (), str(reason))


def report(results: Iterable[BenchResult], *, quick: bool) -> dict[str, Any]:
    """The JSON document of a run."""
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "quick": quick,
        "machine": {
            "processors": os.cpu_count(),
            "architecture": platform.machine(),
            "python": platform.python_version(),
            "loadAverage": [round(load, 2) for load in os.getloadavg()],
        },
        "results": [result.as_json() for result in results],
    }


DEFAULT_ROUNDS: Final = 99


def side_by_side(
    functions: Mapping[str, Callable[[], object]], *, floor: str, repeat: int, rounds: int
) -> dict[str, float]:
    """Seconds of processor time of one call of each; `floor` is one of them.

    In every round all take turns, and each is compared with the floor of its own round; the median of these ratios
    stands, so that a busy machine, which slows whole rounds, moves the ratio little.
    """
    gc.collect()
    seconds: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(rounds):
        for name, function in functions.items():
            began = time.thread_time_ns()
            for _ in range(repeat):
                function()
            seconds[name].append((time.thread_time_ns() - began) / repeat / 1e9)
    base = median(seconds[floor])
    return {
        name: base * median(own / its_floor for own, its_floor in zip(times, seconds[floor], strict=True))
        for name, times in seconds.items()
    }
