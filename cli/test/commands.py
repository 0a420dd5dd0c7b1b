"""`./sophia test` and `./sophia lock`."""

from typing import Annotated

import typer
from rich.console import Console

app = typer.Typer()


@app.command("test")
def run_tests(
    steps: Annotated[
        list[str] | None, typer.Argument(help="lint, format, types, imports, unit, infra, integration, e2e; none: all.")
    ] = None,
    fail_fast: Annotated[bool, typer.Option("--fail-fast", "-x", help="Run no step after the first failure.")] = False,
    update: Annotated[bool, typer.Option("--update", help="Write the infrastructure's snapshots anew first.")] = False,
) -> None:
    """Everything that must hold. Exit code 1 when anything does not."""
    from cli.test.lib import outcome_table, run_steps, steps_named

    def say(text: str) -> None:
        typer.echo(f"\n{text}")

    outcomes = run_steps(steps_named(steps or []), fail_fast=fail_fast, update_snapshots=update, say=say)
    Console(emoji=False).print(outcome_table(outcomes))
    if not all(outcome.passed for outcome in outcomes):
        raise typer.Exit(1)


@app.command()
def lock() -> None:
    """Compile requirements.in and requirements-dev.in into their pinned files."""
    from cli.test.locking import lock_requirements

    for name in lock_requirements():
        typer.echo(f"wrote {name}")
