"""`./sophia demo`: the whole path on this machine, with every promise checked at the end."""

from typing import Annotated

import typer

from cli.demo.lib import Half

app = typer.Typer()


@app.command()
def demo(
    keep: Annotated[bool, typer.Option("--keep", help="Leave the local stage running.")] = False,
    only: Annotated[Half | None, typer.Option("--only", help="One half of it.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write a summary as JSON to stdout.")] = False,
) -> None:
    """Start the local stage, run interviews and documents through it, show what happened, check every promise.

    Exits with 1 when a promise does not hold. Stops what it started, unless --keep is given or the stage ran before.
    """
    from cli.demo.lib import run_demo
    from cli.demo.view import DemoView
    from cli.output import print_json

    view = DemoView(quiet=as_json)
    outcome = run_demo(view, keep=keep, half=only)
    if as_json:
        print_json(outcome.as_json())
    if outcome.faults:
        raise typer.Exit(1)
