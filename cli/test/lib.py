"""Everything that must hold, as named steps: each one command, its output shown as it comes, its time kept."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.table import Table

from api_services.errors import InvalidInputError
from cli.test import browser
from toolchain.paths import ROOT

UPDATE_SNAPSHOTS: Final = "UPDATE_SNAPSHOTS"
"""Tells the infrastructure tests to write their snapshots instead of comparing with them."""

_BIN = Path(sys.executable).parent


@dataclass(frozen=True, slots=True)
class Step:
    """One command; `prepare` brings what it needs and may raise an `AppError`."""

    name: str
    what: str
    command: tuple[str, ...]
    prepare: Callable[[], None] | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a step ended: the command's exit code, None when it was not run."""

    step: Step
    exit_code: int | None
    seconds: float

    @property
    def passed(self) -> bool:
        return self.exit_code == 0


def _tool(name: str, *arguments: str) -> tuple[str, ...]:
    return (str(_BIN / name), *arguments)


def _pytest(*arguments: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "pytest", *arguments)


STEPS: tuple[Step, ...] = (
    Step("lint", "ruff check", _tool("ruff", "check", ".")),
    Step("format", "ruff format", _tool("ruff", "format", "--check", ".")),
    Step("types", "basedpyright, strict", _tool("basedpyright")),
    Step("imports", "import-linter", _tool("lint-imports")),
    Step("unit", "no network, no process", _pytest("tests/unit")),
    Step("infra", "the program under Pulumi's mocks", _pytest("tests/infra")),
    Step("integration", "real mongod and emulator", _pytest("tests/integration"), prepare=browser.ensure),
    Step("e2e", "the whole local stage", _pytest("tests/e2e")),
)


def steps_named(names: Sequence[str]) -> list[Step]:
    """The steps of those names, all when there is none; `InvalidInputError` with the known names otherwise."""
    known = {step.name: step for step in STEPS}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise InvalidInputError(f"no test step '{unknown[0]}'; there are {', '.join(known)}", code="unknown_step")
    return [step for step in STEPS if not names or step.name in names]


def run_steps(
    steps: Sequence[Step],
    *,
    fail_fast: bool,
    say: Callable[[str], None],
    environ: Mapping[str, str] | None = None,
    update_snapshots: bool = False,
) -> list[Outcome]:
    """Run the steps one after another from the repository's root; with `fail_fast` none after the first failure."""
    outcomes: list[Outcome] = []
    # `prepare` has installed a browser, so a test that finds none must fail instead of being skipped.
    environ = {**(environ or os.environ), "SOPHIA_REQUIRE_CHROMIUM": "1"}
    if update_snapshots:
        environ[UPDATE_SNAPSHOTS] = "1"
    for step in steps:
        if fail_fast and any(not outcome.passed for outcome in outcomes):
            outcomes.append(Outcome(step, None, 0.0))
            continue
        say(f"== {step.name}: {step.what}")
        started = time.monotonic()
        if step.prepare is not None:
            step.prepare()
        done = subprocess.run(step.command, cwd=ROOT, env=environ, check=False)  # noqa: S603
        outcomes.append(Outcome(step, done.returncode, time.monotonic() - started))
    return outcomes


def outcome_table(outcomes: Sequence[Outcome]) -> Table:
    """What passed and how long it took."""
    table = Table(title="tests", title_justify="left")
    table.add_column("step")
    table.add_column("what", overflow="fold")
    table.add_column("result")
    table.add_column("seconds", justify="right")
    for outcome in outcomes:
        if outcome.exit_code is None:
            result = "[dim]not run[/dim]"
        else:
            result = "[green]passed[/green]" if outcome.passed else f"[red]failed ({outcome.exit_code})[/red]"
        table.add_row(outcome.step.name, outcome.step.what, result, f"{outcome.seconds:.1f}")
    return table
