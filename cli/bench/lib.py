"""Benchmarks by name, as rows of a table, and as a file."""

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from api_services.errors import InvalidInputError
from benchmarks import harness
from benchmarks.registry import BenchSpec

COLUMNS: Final = ("what", "measured", "floor", "ratio", "target", "met")


def named(names: Sequence[str]) -> list[BenchSpec]:
    """The benchmarks of those names, or all; `InvalidInputError` for one that is not there."""
    try:
        return harness.chosen(names)
    except KeyError as exc:
        raise InvalidInputError(f"There is {exc.args[0]}.", code="unknown_benchmark") from exc


def run(benches: Iterable[BenchSpec], *, quick: bool) -> Iterator[harness.BenchResult]:
    """One result after the other."""
    return harness.run(benches, quick=quick)


def cells(result: harness.BenchResult) -> list[list[object]]:
    """The rows as a table shows them."""
    return [
        [
            row.name,
            f"{row.value:.4g} {row.unit}",
            None if row.floor is None else f"{row.floor:.4g} {row.unit} ({row.floor_name})",
            None if row.ratio is None else f"{row.ratio:.2f}",
            None if row.target is None else f"{'>=' if row.higher_is_better else '<='} {row.target:g}",
            row.is_met,
        ]
        for row in result.rows
    ]


def default_output() -> Path:
    """In the ignored folder of the checkout."""
    return Path(__file__).parents[2] / ".sophia" / "bench.json"


def write(results: Sequence[harness.BenchResult], path: Path, *, quick: bool) -> dict[str, Any]:
    """Write the document of the run, and give it."""
    document = harness.report(results, quick=quick)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=2) + "\n")
    return document
