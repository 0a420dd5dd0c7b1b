"""`./sophia bench`: measure, beside a floor measured in the same run."""

from pathlib import Path
from typing import Annotated

import typer

from benchmarks.harness import BenchResult
from cli.bench import lib
from cli.output import print_json, print_table
from cli.stage_access import JsonOption

app = typer.Typer()


@app.command()
def bench(
    names: Annotated[list[str] | None, typer.Argument(help="Benchmarks to run; all by default.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A size that only shows that the benchmarks work.")] = False,
    listing: Annotated[bool, typer.Option("--list", help="Say what there is, and run nothing.")] = False,
    output: Annotated[Path | None, typer.Option(help="Where to write the JSON; by default .sophia/bench.json.")] = None,
    json_output: JsonOption = False,
) -> None:
    """Run benchmarks; print each number over its floor, with its target, and write them as JSON."""
    benches = lib.named(names or [])
    if listing:
        rows = [[each.name, each.purpose] for each in benches]
        if json_output:
            print_json([{"name": name, "purpose": purpose} for name, purpose in rows])
        else:
            print_table("benchmarks", ("name", "purpose"), rows, empty="there are none")
        return
    results: list[BenchResult] = []
    for result in lib.run(benches, quick=quick):
        results.append(result)
        if not json_output:
            print_table(result.name, lib.COLUMNS, lib.cells(result), empty=f"{result.name}: {result.skipped}")
    document = lib.write(results, output or lib.default_output(), quick=quick)
    if json_output:
        print_json(document)
