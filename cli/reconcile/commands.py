"""`./sophia reconcile`: what the scheduled jobs do, now."""

from datetime import timedelta
from typing import Annotated

import typer

from cli.output import print_json, print_table
from cli.stage_access import LOCAL, ExecuteOption, JsonOption, StageOption, open_stage

app = typer.Typer(name="reconcile", help="Find what was lost on the way, and order it again.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Find what was lost on the way, and order it again."""


@app.command("index")
def index_command(
    stage: StageOption = LOCAL,
    min_age_minutes: Annotated[
        float, typer.Option(min=0, help="Leave alone documents that changed less long ago.")
    ] = 30,
    execute: ExecuteOption = False,
    json_output: JsonOption = False,
) -> None:
    """Compare the search index with the approved documents; with --execute enqueue the difference."""
    from cli.reconcile.index import reconcile_index_of

    difference = reconcile_index_of(open_stage(stage), patience=timedelta(minutes=min_age_minutes), execute=execute)
    if json_output:
        print_json({**difference.model_dump(mode="json", by_alias=True), "executed": execute})
        return
    rows = [
        (kind, document_id)
        for kind, ids in (
            ("missing", difference.missing),
            ("stale", difference.stale),
            ("unwanted", difference.unwanted),
        )
        for document_id in ids
    ]
    title = f"Index of {stage}: {'ordered again' if execute else 'would be ordered again, with --execute'}"
    print_table(title, ("difference", "document"), rows, empty=f"the index of {stage} is in line with its documents")
    if difference.orphans_removed:
        print(f"{difference.orphans_removed} orphaned chunks removed")


@app.command("interviews")
def interviews_command(
    stage: StageOption = LOCAL,
    min_age_minutes: Annotated[
        float, typer.Option(min=0, max=525_600, help="Leave alone what happened, or was enqueued, less long ago.")
    ] = 15,
    execute: ExecuteOption = False,
    json_output: JsonOption = False,
) -> None:
    """Find interviews not settled, and settled ones without a report; with --execute enqueue them."""
    from cli.reconcile.interviews import reconcile_interviews_of

    found = reconcile_interviews_of(open_stage(stage), grace=timedelta(minutes=min_age_minutes), execute=execute)
    if json_output:
        print_json(
            {
                "unsettled": found.unsettled,
                "withoutReport": found.without_report,
                "expiredLeases": found.expired_leases,
                "complete": found.complete,
                "executed": execute,
            }
        )
        return
    more = "" if found.complete else "+"
    rows = [
        ("ended, not settled", f"{found.unsettled}{more}"),
        ("settled, without a report", f"{found.without_report}{more}"),
        ("report whose writer is gone", f"{found.expired_leases}{more}"),
    ]
    title = f"Interviews of {stage}: {'enqueued' if execute else 'would be enqueued, with --execute'}"
    print_table(title, ("gap", "interviews"), rows, empty="no gap")


@app.command("credits")
def credits_command(stage: StageOption = LOCAL, json_output: JsonOption = False) -> None:
    """Check that ledgers, lots, overdrafts and settled interviews agree; exit code 1 where they do not."""
    from cli.reconcile.interviews import credit_violations

    violations = credit_violations(open_stage(stage))
    if json_output:
        print_json([{"rule": each.rule, "subject": each.subject, "detail": each.detail} for each in violations])
    else:
        rows = [(each.subject, each.rule, each.detail) for each in violations]
        print_table(
            f"Broken rules of {stage}", ("subject", "rule", "found"), rows, empty=f"the credits of {stage} agree"
        )
    if violations:
        raise typer.Exit(1)
