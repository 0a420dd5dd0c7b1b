"""`./sophia verify`: prove a deployed stage."""

from typing import Annotated

import typer

from api_services.queues import QUEUES
from api_services.schedules import SCHEDULES
from api_services.secrets import API_KEYS, LANGFUSE_SECRET_KEY, TURSO_AUTH_TOKEN
from cli.output import print_json, print_table
from cli.stage_access import LOCAL, JsonOption, StageAccess, StageOption, open_stage
from cli.verify.checks import Finding, verify

app = typer.Typer()

_OPTIONAL = (LANGFUSE_SECRET_KEY, TURSO_AUTH_TOKEN)


@app.command("verify")
def verify_stage(
    stage: StageOption = LOCAL,
    canary: Annotated[
        bool, typer.Option("--canary", help="Send each queue a body that is dropped, and find it in the log.")
    ] = False,
    json_output: JsonOption = False,
) -> None:
    """Ask AWS whether the stage is as the registry says and able to work; exit code 1 when it is not."""
    access = open_stage(stage)
    findings = list(verify(stage, access.outputs, access, secrets_used=_secrets_used(access), canary=canary))
    if json_output:
        print_json(
            [{"check": one.check, "subject": one.subject, "ok": one.ok, "detail": one.detail} for one in findings]
        )
    else:
        _show(stage, findings)
    if not all(finding.ok for finding in findings):
        raise typer.Exit(1)


def _show(stage: str, findings: list[Finding]) -> None:
    rows = [(one.check, one.subject, one.ok, one.detail) for one in findings]
    print_table(f"Stage {stage}", ("check", "subject", "right", "detail"), rows, empty="nothing to check")


def _secrets_used(access: StageAccess) -> frozenset[str]:
    """Every declared secret that the stage has; a stage has the optional ones only where it uses them."""
    from cli.secrets.lib import states

    exists = {state.name for state in states(access.secretsmanager, access.stage) if state.exists}
    declared = {secret for spec in (*QUEUES, *SCHEDULES) for secret in spec.secrets} | {API_KEYS}
    return frozenset(secret.name for secret in declared if secret not in _OPTIONAL or secret.name in exists)
