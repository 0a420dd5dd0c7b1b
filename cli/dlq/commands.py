"""`./sophia dlq`: look at what died and why, move it back, empty it, undo that."""

import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from api_services.errors import InvalidInputError
from api_services.queues import QUEUES, QueueSpec
from cli.dlq import backup as backups
from cli.dlq.messages import MessageFilter, depth, peek
from cli.dlq.redrive import RedriveResult, destination
from cli.dlq.redrive import redrive as move_back
from cli.dlq.view import kept_of, summary_of
from cli.output import print_json, print_table
from cli.queue.lib import spec_named, url_of
from cli.stage_access import LOCAL, ExecuteOption, JsonOption, StageAccess, StageOption, open_stage

app = typer.Typer(name="dlq", help="Dead-letter queues: list, show, redrive, purge, restore.", no_args_is_help=True)

QueueArgument = Annotated[str, typer.Argument(help="Name of the queue, such as report-generate.")]
CodeOption = Annotated[str | None, typer.Option("--code", help="Only messages with this error code.")]
RequestOption = Annotated[str | None, typer.Option("--request-id", help="Only messages of this request.")]
MessageOption = Annotated[str | None, typer.Option("--message-id", help="Only this message.")]
AgeOption = Annotated[float | None, typer.Option("--min-age-seconds", help="Only messages sent at least so long ago.")]
LimitOption = Annotated[int, typer.Option(min=1, max=10_000, help="Messages to look at, at most.")]


@app.command("list")
def list_letters(
    queue: Annotated[str | None, typer.Argument(help="Name of the queue; all of them when left out.")] = None,
    stage: StageOption = LOCAL,
    code: CodeOption = None,
    request_id: RequestOption = None,
    min_age_seconds: AgeOption = None,
    limit: LimitOption = 100,
    json_output: JsonOption = False,
) -> None:
    """What died, with its reason and counted by cause; bodies are not shown."""
    wanted = MessageFilter(error_code=code, request_id=request_id, min_age_seconds=min_age_seconds)
    specs = QUEUES if queue is None else (spec_named(queue),)
    access = open_stage(stage)
    found: list[dict[str, Any]] = []
    for spec in specs:
        messages = peek(access.sqs, url_of(access.outputs, spec.dlq_output, stage), at_most=limit, wanted=wanted)
        kept = kept_of(access, spec.name, messages)
        found += [{"queue": spec.name} | summary_of(one, kept.get(one.original_message_id)) for one in messages]
    if json_output:
        print_json(found)
        return
    columns = ("queue", "messageId", "sentAt", "errorCode", "receiveCount", "redriveCount", "requestId")
    empty = "no dead messages" if queue is None else f"no dead messages of {queue}"
    print_table(
        f"Dead messages ({stage})", columns, [[one[column] for column in columns] for one in found], empty=empty
    )
    causes = Counter((one["queue"], one["fingerprint"], one["errorCode"], one["where"]) for one in found)
    if causes:
        rows = [(count, *cause) for cause, count in causes.most_common()]
        print_table("By cause", ("messages", "queue", "fingerprint", "code", "where"), rows, empty="no causes")


@app.command()
def show(
    queue: QueueArgument,
    message_id: Annotated[str, typer.Argument(help="Id of the message, as `list` shows it.")],
    stage: StageOption = LOCAL,
    limit: LimitOption = 1000,
    json_output: JsonOption = False,
) -> None:
    """One message with its body and attributes."""
    _, access, dlq_url = _opened(queue, stage)
    messages = peek(access.sqs, dlq_url, at_most=limit, wanted=MessageFilter(message_id=message_id))
    if not messages:
        raise InvalidInputError(f"no message {message_id} among the first {limit} of {queue}", code="no_message")
    kept = kept_of(access, queue, messages).get(messages[0].original_message_id)
    shown = summary_of(messages[0], kept)
    shown["traceback"] = list(kept.frames) if kept else []
    shown |= {"body": messages[0].body, "attributes": messages[0].attributes}
    if json_output:
        print_json(shown)
        return
    rows = [
        (name, value if isinstance(value, str) else json.dumps(value, default=str)) for name, value in shown.items()
    ]
    print_table(f"Message {message_id}", ("field", "value"), rows, empty="")


@app.command()
def redrive(
    queue: QueueArgument,
    stage: StageOption = LOCAL,
    to: Annotated[str | None, typer.Option(help="The source queue, where the DLQ has more than one.")] = None,
    code: CodeOption = None,
    request_id: RequestOption = None,
    message_id: MessageOption = None,
    min_age_seconds: AgeOption = None,
    delay_seconds: Annotated[int, typer.Option(help="Delay of each message, 0 to 900.")] = 0,
    force: Annotated[bool, typer.Option(help="Also what was redriven too often or would be dropped.")] = False,
    execute: ExecuteOption = False,
    json_output: JsonOption = False,
) -> None:
    """Move messages back to the queue they came from."""
    wanted = MessageFilter(
        error_code=code, request_id=request_id, message_id=message_id, min_age_seconds=min_age_seconds
    )
    spec, access, dlq_url = _opened(queue, stage)
    target = destination(access.sqs, dlq_url, stage_prefix=f"sophia-{stage}-", wanted=to)
    result = move_back(
        access.sqs,
        spec,
        dlq_url=dlq_url,
        destination_url=target,
        wanted=wanted,
        execute=execute,
        force=force,
        delay_seconds=delay_seconds,
    )
    if json_output:
        print_json(_as_json(result, executed=execute))
    else:
        _tell(result, executed=execute)
    if (result.over_limit or result.invalid) and not result.moved:
        raise typer.Exit(1)


@app.command()
def purge(
    queue: QueueArgument,
    stage: StageOption = LOCAL,
    backup: Annotated[Path | None, typer.Option(help="File for the messages; a dated one here when left out.")] = None,
    confirm: Annotated[str | None, typer.Option(help="The queue's name, instead of typing it.")] = None,
    execute: ExecuteOption = False,
) -> None:
    """Empty the dead-letter queue, each message written to a backup first."""
    _, access, dlq_url = _opened(queue, stage)
    waiting = depth(access.sqs, dlq_url)
    target = backup or Path(f"{queue}-{stage}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.jsonl")
    typer.echo(f"{waiting} messages of {queue} ({stage}) go to {target}, then out of the queue")
    if not execute:
        typer.echo("add --execute to do it")
        return
    typed = confirm if confirm is not None else typer.prompt("Type the queue's name")
    if typed != queue:
        raise InvalidInputError(f"'{typed}' is not '{queue}'; nothing was deleted", code="not_confirmed")
    deleted = backups.purge(access.sqs, dlq_url, target)
    typer.echo(f"deleted {deleted} messages; `./sophia dlq restore {queue} {target} -s {stage} --execute` undoes it")


@app.command()
def restore(
    queue: QueueArgument,
    backup: Annotated[Path, typer.Argument(help="A file that `purge` wrote.")],
    stage: StageOption = LOCAL,
    execute: ExecuteOption = False,
) -> None:
    """Put the messages of a backup into the dead-letter queue again."""
    spec, access, dlq_url = _opened(queue, stage)
    if not execute:
        typer.echo(f"would put the messages of {backup} into the DLQ of {queue} ({stage}); add --execute to do it")
        return
    restored = backups.restore(access.sqs, dlq_url, backup, fifo=spec.fifo)
    typer.echo(f"restored {restored} messages")


def _opened(queue: str, stage: str) -> tuple[QueueSpec[Any], StageAccess, str]:
    spec = spec_named(queue)
    access = open_stage(stage)
    return spec, access, url_of(access.outputs, spec.dlq_output, stage)


def _as_json(result: RedriveResult, *, executed: bool) -> dict[str, Any]:
    return {
        "executed": executed,
        "destination": result.destination_url.rsplit("/", 1)[-1],
        "waitingAtStart": result.waiting_at_start,
        "moved": result.moved,
        "overLimit": result.over_limit,
        "invalid": result.invalid,
        "notMatching": result.not_matching,
    }


def _tell(result: RedriveResult, *, executed: bool) -> None:
    verb = "moved" if executed else "would move"
    name = result.destination_url.rsplit("/", 1)[-1]
    typer.echo(f"{verb} {len(result.moved)} of {result.waiting_at_start} messages to {name}")
    if result.not_matching:
        typer.echo(f"{result.not_matching} do not match")
    if result.over_limit:
        typer.echo(f"{len(result.over_limit)} were redriven too often; mend the cause, or add --force")
    if result.invalid:
        typer.echo(f"{len(result.invalid)} would be dropped by the consumer; look with `show`, or add --force")
    if not executed and result.moved:
        typer.echo("add --execute to move them")
