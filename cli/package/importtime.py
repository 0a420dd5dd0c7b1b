"""Measures imports from a built zip, in a fresh interpreter that sees nothing but the zip and the standard library."""

import json
import re
import subprocess
import tempfile
import zipfile
from collections import defaultdict
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from infra.packaging.errors import PackagingError
from infra.packaging.record import Record

_LINE = re.compile(r"^import time:\s+(\d+) \|\s+(\d+) \| (\s*)(\S+)$")
_TIMEOUT_SECONDS = 60

_MEASURE = """
import json, sys, time
sys.path.insert(0, sys.argv[1])
times = []
for names in json.loads(sys.argv[2]):
    start = time.process_time()
    for name in names:
        __import__(name)
    times.append((time.process_time() - start) * 1000)
print(json.dumps(times))
"""


@dataclass(frozen=True, slots=True)
class ImportTimes:
    """Milliseconds of processor time, which a busy machine disturbs less than time on the clock.

    `handler_ms` before the first event, `rest_ms` for what is imported on first use after that.
    """

    handler_ms: float
    rest_ms: float


@dataclass(frozen=True, slots=True)
class ImportCost:
    """One module: its own time and that of all it imports, in milliseconds; `depth` is its place in the tree."""

    module: str
    depth: int
    own_ms: float
    total_ms: float


@contextmanager
def unpacked(zip_path: Path) -> Generator[Path]:
    """The zip's contents in a folder that goes away."""
    with tempfile.TemporaryDirectory(prefix="sophia-package-") as folder, zipfile.ZipFile(zip_path) as archive:
        archive.extractall(folder)
        yield Path(folder)


def measure(folder: Path, python: str, record: Record, runs: int = 3) -> ImportTimes:
    """The fastest of `runs` imports of the handler, and of everything else that it can reach."""
    handler, rest = _imported(record)
    measured = [_times(python, folder, [[handler], rest]) for _ in range(runs)]
    return ImportTimes(min(times[0] for times in measured), min(times[1] for times in measured))


def tree(folder: Path, python: str, record: Record, *, everything: bool) -> list[ImportCost]:
    """What the handler's import imports, parents before what they import. `everything` adds what is imported lazily."""
    handler, rest = _imported(record)
    output = _run(python, ["-X", "importtime"], folder, [[handler], rest if everything else []]).stderr
    return parse(output)


def parse(output: str) -> list[ImportCost]:
    """Read `-X importtime`: it prints a module after what that imports; the result has it before."""
    costs: list[ImportCost] = []
    for line in output.splitlines():
        match = _LINE.match(line)
        if match is not None:
            depth = len(match[3]) // 2
            costs.append(ImportCost(match[4], depth, int(match[1]) / 1000, int(match[2]) / 1000))
    return list(reversed(costs))


def by_package(costs: Sequence[ImportCost]) -> list[tuple[str, float]]:
    """Own milliseconds summed by top-level package, most expensive first."""
    sums: dict[str, float] = defaultdict(float)
    for cost in costs:
        sums[cost.module.partition(".")[0]] += cost.own_ms
    return sorted(sums.items(), key=lambda item: -item[1])


def _imported(record: Record) -> tuple[str, list[str]]:
    handler = record.handler.rpartition(".")[0]
    return handler, [name for name in (*record.modules, *record.imports) if name != handler]


def _times(python: str, folder: Path, names: list[list[str]]) -> list[float]:
    return json.loads(_run(python, [], folder, names).stdout)


def _run(python: str, options: list[str], folder: Path, names: list[list[str]]) -> subprocess.CompletedProcess[str]:
    command = [python, "-I", "-S", "-B", *options, "-c", _MEASURE, str(folder), json.dumps(names)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_SECONDS, env={})  # noqa: S603
    if done.returncode != 0:
        reason = done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "no output"
        raise PackagingError(f"the package cannot import {names[0][0]} by itself: {reason}", code="package_import")
    return done
