"""`./sophia package`: build the functions' zips, and say what they weigh and what their imports cost."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from api_services.errors import InvalidInputError
from cli.package import importtime, lib
from infra.packaging.targets import Target

ROOT = Path(__file__).parents[2]

app = typer.Typer()


@app.command()
def package(
    functions: Annotated[list[str] | None, typer.Argument(help="Folders in functions/; all by default.")] = None,
    stage: Annotated[str, typer.Option("-s", "--stage", help="Build for what this stage runs on.")] = "dev",
    arch: Annotated[str | None, typer.Option(help="Build for x86_64 or arm64 instead.")] = None,
    python: Annotated[str | None, typer.Option(help="Build for this Python instead, such as 3.13.")] = None,
    report: Annotated[bool, typer.Option("--report", help="Measure imports, and hold them to the budgets.")] = False,
    imports: Annotated[str | None, typer.Option(metavar="FUNCTION", help="Which import costs what.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="With --imports: what is imported lazily, too.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON.")] = False,
) -> None:
    """Build the Lambda packages; report sizes, and import times where this machine can run them."""
    known = lib.function_names()
    wanted = [imports] if imports else functions or known
    for name in wanted:
        if name not in known:
            raise InvalidInputError(f"No function '{name}'; there are {', '.join(known)}.", code="unknown_function")
    target = lib.stage_target(stage, ROOT)
    output = ROOT / ".sophia" / "build" / stage
    if arch or python:
        target = Target(arch or target.architecture, python or target.python_version)  # pyright: ignore[reportArgumentType]
        output = ROOT / ".sophia" / "build" / f"{target.architecture}-{target.python_version}"
    built = lib.build_all(wanted, target, output)
    interpreter = lib.interpreter_of(target) if report or imports else None
    if imports:
        if interpreter is None:
            raise InvalidInputError(
                f"This machine cannot run a package for {target}; add --arch and --python of its own.",
                code="package_not_runnable",
            )
        _show_imports(built[0], interpreter, everything=everything, as_json=as_json)
        return
    if interpreter is not None:
        built = lib.measured(built, interpreter)
    if as_json:
        typer.echo(json.dumps([one.as_json() for one in built], indent=1))
    else:
        _show(built, target, measured=report)
    error = lib.over_budget(built)
    if error is not None:
        raise error


def _show(built: list[lib.Built], target: Target, *, measured: bool) -> None:
    table = Table(title=f"Packages for {target}", title_justify="left")
    table.add_column("function")
    for column in ("zip MB", "unzipped MB", "files", "import ms", "later ms"):
        table.add_column(column, justify="right")
    for one in built:
        table.add_row(
            one.function,
            f"{one.record.size_bytes / 1e6:.1f} of {one.budget.zip_bytes / 1e6:.0f}",
            f"{one.record.unzipped_bytes / 1e6:.1f} of {one.budget.unzipped_bytes / 1e6:.0f}",
            str(one.record.file_count),
            f"{one.times.handler_ms:.0f} of {one.budget.import_ms}" if one.times else "-",
            f"{one.times.rest_ms:.0f}" if one.times else "-",
        )
    Console(soft_wrap=True, emoji=False).print(table)
    if any(one.record.bytecode is None for one in built):
        typer.echo(
            f"No bytecode: there is no Python {target.python_version} on this machine, so each cold start compiles "
            "every module. Install one, or name it in SOPHIA_BYTECODE_PYTHON."
        )
    if measured and all(one.times is None for one in built):
        typer.echo(f"Imports are not measured: this machine cannot run a package for {target}. Add --arch of its own.")


def _show_imports(one: lib.Built, python: str, *, everything: bool, as_json: bool) -> None:
    with importtime.unpacked(one.path) as folder:
        costs = importtime.tree(folder, python, one.record, everything=everything)
    packages = importtime.by_package(costs)
    if as_json:
        modules = [{"module": c.module, "depth": c.depth, "ownMs": c.own_ms, "totalMs": c.total_ms} for c in costs]
        typer.echo(json.dumps({"function": one.function, "packages": dict(packages), "modules": modules}, indent=1))
        return
    console = Console(soft_wrap=True, emoji=False)
    table = Table(title=f"Import of {one.function}, by package", title_justify="left")
    table.add_column("package")
    table.add_column("own ms", justify="right")
    for name, own_ms in packages[:20]:
        table.add_row(name, f"{own_ms:.1f}")
    console.print(table)
    tree = Table(title="Imports of 2 ms and more", title_justify="left")
    tree.add_column("module")
    tree.add_column("own ms", justify="right")
    tree.add_column("with its imports ms", justify="right")
    for cost in costs:
        if cost.total_ms >= 2:
            tree.add_row("  " * cost.depth + cost.module, f"{cost.own_ms:.1f}", f"{cost.total_ms:.1f}")
    console.print(tree)
