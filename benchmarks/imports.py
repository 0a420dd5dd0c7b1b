"""Import time of each handler from its built zip: with its bytecode, without, and of its libraries alone."""

import shutil
from collections.abc import Iterable
from pathlib import Path
from statistics import median
from typing import Final

from benchmarks.harness import Row
from benchmarks.packages import Unpacked, run_isolated, unpacked

BYTECODE_TARGET: Final = 0.45
LIBRARIES_TARGET: Final = 1.2

PYDANTIC: Final = "from pydantic import AwareDatetime, BaseModel, Field, StringConstraints, TypeAdapter"
PYMONGO: Final = "from pymongo import MongoClient"

LIBRARIES: Final = f"{PYDANTIC}\n{PYMONGO}"
"""What every function needs before anything else can be done; OpenAI and botocore come with the first call."""

MEASURE: Final = """
import json, time
start = time.process_time()
exec(sys.argv[2])
print(json.dumps((time.process_time() - start) * 1000))
"""


def run(quick: bool) -> Iterable[Row]:
    """Milliseconds of processor time; the three take turns, and the median of the ratios is reported."""
    with unpacked(limit=1 if quick else None) as functions:
        for function in functions:
            yield from _rows(function, rounds=2 if quick else 9)


def _rows(function: Unpacked, rounds: int) -> Iterable[Row]:
    bare = function.folder.with_name(f"{function.folder.name}-bare")
    shutil.copytree(function.folder, bare, ignore=shutil.ignore_patterns("*.pyc", "__pycache__"))
    handler = f"import {function.handler_module}"
    shipped: list[float] = []
    compiled: list[float] = []
    needed: list[float] = []
    for _ in range(rounds):
        shipped.append(_milliseconds(function.folder, handler))
        compiled.append(_milliseconds(bare, handler))
        needed.append(_milliseconds(function.folder, LIBRARIES))
    for floor_name, floors, target in (
        ("without bytecode", compiled, BYTECODE_TARGET),
        ("its libraries alone", needed, LIBRARIES_TARGET),
    ):
        ratio = median(own / floor for own, floor in zip(shipped, floors, strict=True))
        yield Row(
            name=f"{function.module} over {floor_name}",
            value=ratio * median(floors),
            unit="ms",
            floor=median(floors),
            floor_name=floor_name,
            target=target,
        )


def _milliseconds(folder: Path, statements: str) -> float:
    return float(run_isolated(MEASURE, folder, statements))
