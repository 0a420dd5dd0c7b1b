"""`./sophia up | down | status | logs`: the local stage kept running."""

import json
from typing import Annotated

import typer
from rich.console import Console

from cli.progress import DrawnProgress

app = typer.Typer()

AsJson = Annotated[bool, typer.Option("--json", help="Write JSON to stdout.")]


@app.command()
def up(as_json: AsJson = False) -> None:
    """Start the local stage and deploy to it; what runs and is current is left alone."""
    from cli.local.lib import describe
    from local.stage import LocalStage

    with DrawnProgress() as progress:
        running = LocalStage().up(progress)
    if as_json:
        typer.echo(json.dumps(describe(running), indent=2))
        return
    console = Console(emoji=False)
    console.print(f"The local stage is up: API {running.api_url}, portal {running.api_url}/portal", soft_wrap=True)
    console.print("Bearer keys are in .sophia/keys.json. `./sophia status` shows more, `./sophia down` stops it.")


@app.command()
def down(
    delete_data: Annotated[
        bool, typer.Option("--delete-data", help="Also delete the database, the index, keys and logs.")
    ] = False,
) -> None:
    """Stop every process of the local stage; data, keys and logs are kept."""
    from local.stage import LocalStage

    stage = LocalStage()
    with DrawnProgress() as progress:
        stopped = stage.down(progress)
        if delete_data:
            stage.delete_data()
    typer.echo(f"stopped {stopped} processes" if stopped else "nothing ran")


@app.command()
def status(as_json: AsJson = False) -> None:
    """Processes, ports, queues and outputs of the local stage."""
    from cli.local.lib import read_status, status_tables
    from local.stage import LocalStage

    found = read_status(LocalStage())
    if as_json:
        typer.echo(json.dumps(found.as_json(), indent=2))
        return
    console = Console(emoji=False)
    for table in status_tables(found):
        console.print(table)


@app.command()
def logs(
    name: Annotated[
        str | None, typer.Argument(help="A service (api, llm, emulator, mongod, pulumi-up) or a function.")
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until Ctrl-C.")] = False,
    lines: Annotated[int, typer.Option("--lines", "-n", min=0, max=100_000, help="Last lines of each log.")] = 20,
) -> None:
    """The logs of the local stage's services and functions."""
    from cli.local.logs import log_lines
    from local.stage import LocalStage

    for line in log_lines(LocalStage(), name, last=lines, follow=follow):
        typer.echo(line)
