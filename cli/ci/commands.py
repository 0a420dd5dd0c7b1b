"""`./sophia ci`: what the workflows need beside the commands people use."""

from pathlib import Path
from typing import Annotated

import typer

from api_services.errors import InvalidInputError
from cli.ci.lib import previews_of, render

app = typer.Typer(name="ci", help="What the workflows need.", no_args_is_help=True)


@app.callback()
def group() -> None:
    """What the workflows need."""


@app.command()
def comment(
    previews: Annotated[
        list[str] | None, typer.Argument(help="STAGE=FILE, written by `pulumi preview --json`.")
    ] = None,
    offline: Annotated[
        list[str] | None, typer.Option(help="STAGE=FILE of a preview against nothing, for stages without state.")
    ] = None,
    commit: Annotated[str, typer.Option(help="The commit that was previewed.")] = "",
) -> None:
    """Write the pull request's comment from previews: what is replaced or deleted comes first."""
    real = dict(_parsed(item) for item in previews or [])
    as_if_new = {stage: path for stage, path in map(_parsed, offline or []) if stage not in real}
    found = [*previews_of(real, against_state=True), *previews_of(as_if_new, against_state=False)]
    typer.echo(render(found, commit), nl=False)


def _parsed(item: str) -> tuple[str, Path]:
    stage, separator, path = item.partition("=")
    if not separator or not stage or not path:
        raise InvalidInputError(f"'{item}': write STAGE=FILE.", code="preview_argument")
    return stage, Path(path)
