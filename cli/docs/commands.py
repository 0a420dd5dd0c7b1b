"""`./sophia docs`: write the generated documents."""

from pathlib import Path

import typer

from cli.docs.lib import write_generated

app = typer.Typer()


@app.command()
def docs() -> None:
    """Write the documents that are generated from the registry."""
    written = write_generated(Path(__file__).parents[2])
    typer.echo(
        "\n".join(f"wrote {path}" for path in written) or "nothing to write: every generated document is current"
    )
