"""Builds the packages of all functions and reports on them."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import yaml

from api_services.errors import InvalidInputError
from api_services.queues import QUEUES, STANDALONE
from api_services.schedules import SCHEDULES
from cli.package import importtime
from infra.packaging.budgets import Budget, budget_of
from infra.packaging.builder import build_function
from infra.packaging.bytecode import find_compiler
from infra.packaging.errors import BudgetError
from infra.packaging.record import Record, read_record
from infra.packaging.targets import (
    DEFAULT_ARCHITECTURE,
    DEFAULT_PYTHON_VERSION,
    Target,
    host_architecture,
    host_python_version,
)


@dataclass(frozen=True, slots=True)
class Built:
    """One function's package. `times` is none where this machine cannot run it."""

    function: str
    record: Record
    path: Path
    budget: Budget
    times: importtime.ImportTimes | None = None

    def as_json(self) -> dict[str, Any]:
        record = asdict(self.record)
        record.pop("modules")
        return {
            "function": self.function,
            "zip": str(self.path),
            **record,
            "budget": asdict(self.budget),
            "importMs": asdict(self.times) if self.times else None,
        }


def function_names() -> list[str]:
    """Every function of the registry by its folder, deployed or not."""
    return [spec.module for spec in (*QUEUES, *STANDALONE, *SCHEDULES)]


def stage_target(stage: str, root: Path) -> Target:
    """Architecture and Python of a stage, from its `Pulumi.<stage>.yaml`."""
    path = root / f"Pulumi.{stage}.yaml"
    if not path.is_file():
        stages = ", ".join(sorted(found.name.split(".")[1] for found in root.glob("Pulumi.*.yaml")))
        raise InvalidInputError(f"There is no stage '{stage}'; there are {stages}.", code="unknown_stage")
    document: dict[str, dict[str, Any] | None] = yaml.safe_load(path.read_text()) or {}
    config = document.get("config") or {}
    architecture: Any = config.get("sophia:architecture", DEFAULT_ARCHITECTURE)
    python_version = str(config.get("sophia:pythonVersion", DEFAULT_PYTHON_VERSION))
    return Target(
        host_architecture() if architecture == "host" else architecture,
        host_python_version() if python_version == "host" else python_version,
    )


def build_all(functions: Sequence[str], target: Target, output_dir: Path) -> list[Built]:
    """Build the packages of `functions`; those that stand already cost nothing."""
    built: list[Built] = []
    for function in functions:
        package = build_function(
            f"functions.{function}.handler.handler",
            architecture=target.architecture,
            python_version=target.python_version,
            output_dir=output_dir,
        )
        built.append(Built(function, read_record(package.path), package.path, budget_of(function)))
    return built


def interpreter_of(target: Target) -> str | None:
    """An interpreter of this machine that can run a package for `target`."""
    compiler = find_compiler(target.python_version) if target.architecture == host_architecture() else None
    return compiler.python if compiler else None


def measured(built: Sequence[Built], python: str) -> list[Built]:
    """Import each package in a fresh interpreter."""
    results: list[Built] = []
    for one in built:
        with importtime.unpacked(one.path) as folder:
            times = importtime.measure(folder, python, one.record)
        results.append(Built(one.function, one.record, one.path, one.budget, times))
    return results


def over_budget(built: Sequence[Built]) -> BudgetError | None:
    """The first import over its budget. Sizes were held against theirs when the package was built."""
    for one in built:
        if one.times is not None:
            try:
                one.budget.check_import(one.function, one.times.handler_ms)
            except BudgetError as error:
                return error
    return None
