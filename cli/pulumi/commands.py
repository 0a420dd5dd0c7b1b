"""`./sophia pulumi ARGS...` and `./sophia env`: the Pulumi CLI, set up for this project."""

import os
import subprocess
from pathlib import Path

import typer

from cli.progress import DrawnProgress

app = typer.Typer()


@app.command(
    add_help_option=False,
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "allow_interspersed_args": False},
)
def pulumi(context: typer.Context) -> None:
    """The Pulumi CLI. `-s local` is the local stage; `preview -s STAGE --offline` needs no account."""
    from cli.pulumi.lib import plan_run, scratch_folder
    from local.stage import LocalStage
    from toolchain.pulumi_cli import find_or_obtain

    stage = LocalStage()
    with DrawnProgress() as progress:
        cli = find_or_obtain(os.environ, progress.note)
    with scratch_folder(stage.paths) as scratch:
        run = plan_run(context.args, stage, cli, os.environ, scratch=Path(scratch))
        process = subprocess.Popen(run.command, env=dict(run.environ), cwd=run.cwd)  # noqa: S603
        raise typer.Exit(_wait(process))


def _wait(process: "subprocess.Popen[bytes]") -> int:
    """The exit code of the CLI. It gets Ctrl-C from the terminal itself and is left to end in its own way."""
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            continue
        except SystemExit:
            process.terminate()
            process.wait()
            raise


@app.command()
def env() -> None:
    """Shell exports after which plain `pulumi` works: eval "$(./sophia env)"."""
    from cli.pulumi.lib import shell_exports
    from toolchain.pulumi_cli import find_or_obtain

    with DrawnProgress() as progress:
        cli = find_or_obtain(os.environ, progress.note)
    for line in shell_exports(cli, os.environ):
        typer.echo(line)
