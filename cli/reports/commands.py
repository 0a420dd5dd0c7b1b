"""`./sophia reports`: look at reports that did not come about, and have them tried again."""

from typing import Annotated

import typer

from cli.output import print_json, print_table
from cli.stage_access import LOCAL, ExecuteOption, JsonOption, StageOption, open_stage

app = typer.Typer(name="reports", help="Reports: list those that failed, show one, reset one.", no_args_is_help=True)

InterviewArgument = Annotated[str, typer.Argument(help="Id of the interview.")]

COLUMNS = ("interviewId", "status", "failureCode", "failureDetail", "attemptCount", "model", "costMicroUsd")


@app.command("list")
def list_command(
    stage: StageOption = LOCAL,
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="Reports, at most.")] = 100,
    json_output: JsonOption = False,
) -> None:
    """Reports that failed and wait for a reset."""
    from cli.reports.lib import failed_reports

    _show(failed_reports(open_stage(stage), limit=limit), f"Failed reports of {stage}", json_output)


@app.command("show")
def show_command(interview_id: InterviewArgument, stage: StageOption = LOCAL, json_output: JsonOption = False) -> None:
    """How far the report of one interview is."""
    from cli.reports.lib import report_of

    _show([report_of(open_stage(stage), interview_id)], f"Report of {interview_id} ({stage})", json_output)


@app.command("reset")
def reset_command(
    interview_id: InterviewArgument,
    stage: StageOption = LOCAL,
    execute: ExecuteOption = False,
    json_output: JsonOption = False,
) -> None:
    """Forget the attempts of a report that is not written; with --execute do it and enqueue it again."""
    from cli.reports.lib import report_of, reset

    access = open_stage(stage)
    shown = reset(access, interview_id) if execute else report_of(access, interview_id)
    title = f"Report of {interview_id} ({stage}), " + ("reset and enqueued" if execute else "to reset with --execute")
    _show([shown], title, json_output)


def _show(reports: list[dict[str, object]], title: str, json_output: bool) -> None:
    if json_output:
        print_json(reports)
        return
    rows = [[report.get(column) for column in COLUMNS] for report in reports]
    print_table(title, COLUMNS, rows, empty="no report has failed")
