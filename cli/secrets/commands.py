"""`./sophia secrets`: write the values that the stack leaves empty."""

import sys
from typing import Annotated

import typer

from cli.output import print_json, print_table
from cli.secrets.lib import ROLES, Role, add_api_key, set_value, spec_named, states
from cli.stage_access import LOCAL, ExecuteOption, JsonOption, StageOption, open_stage

app = typer.Typer(name="secrets", help="Values of the stage's secrets; none is ever shown.", no_args_is_help=True)


@app.command("list")
def list_secrets(stage: StageOption = LOCAL, json_output: JsonOption = False) -> None:
    """Which secrets the stage has, and which have a value."""
    found = states(open_stage(stage).secretsmanager, stage)
    if json_output:
        print_json(
            [
                {"name": one.name, "exists": one.exists, "hasValue": one.has_value, "changedAt": one.changed_at}
                for one in found
            ]
        )
        return
    print_table(
        f"Secrets of {stage}",
        ("secret", "what it is", "exists", "has a value", "changed"),
        [(one.name, one.description, one.exists, one.has_value, one.changed_at) for one in found],
        empty="no secrets",
    )


@app.command("set")
def set_secret(
    name: Annotated[str, typer.Argument(help="Name of the secret, such as mongo-uri.")], stage: StageOption = LOCAL
) -> None:
    """Write a value: typed unseen at a terminal, or from standard input; never an argument."""
    spec = spec_named(name)
    access = open_stage(stage)
    value: str = typer.prompt(f"{name} of {stage}", hide_input=True) if sys.stdin.isatty() else sys.stdin.read()
    set_value(access.secretsmanager, spec, stage, value.rstrip("\r\n"))
    typer.echo(f"wrote {name} of {stage}; running functions read it at their next cold start")


@app.command("new-key")
def new_key(
    role: Annotated[Role, typer.Argument(help=f"One of {', '.join(ROLES)}.")],
    stage: StageOption = LOCAL,
    execute: ExecuteOption = False,
) -> None:
    """Make a bearer key of the API: its digest is stored, the key itself is printed this once."""
    if not execute:
        typer.echo(f"would add a {role} key to the API of {stage} and print it; add --execute to do it")
        return
    key = add_api_key(open_stage(stage).secretsmanager, stage, role)
    typer.echo(f"added a {role} key of {stage}; the API takes it after its next start. It is shown only now:", err=True)
    typer.echo(key)
