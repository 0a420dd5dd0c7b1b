"""`./sophia queue`: what waits, and sending a message that the consumer would take."""

import sys
from typing import Annotated

import typer

from api_services.queues import QUEUES
from cli.output import print_json, print_table
from cli.queue.lib import checked_message, spec_named, states, url_of
from cli.stage_access import LOCAL, ExecuteOption, JsonOption, StageOption, open_stage

app = typer.Typer(name="queue", help="What waits in the queues, and sending to them.", no_args_is_help=True)


@app.command("list")
def list_queues(json_output: JsonOption = False) -> None:
    """The registry: every queue with its producers, consumer and limits."""
    rows = [
        (spec.name, spec.purpose, ", ".join(spec.producers), spec.batch_size, spec.function_timeout_seconds)
        for spec in QUEUES
    ]
    if json_output:
        print_json([{"name": row[0], "purpose": row[1], "producers": row[2].split(", ")} for row in rows])
        return
    print_table("Queues", ("queue", "purpose", "producers", "batch", "timeout (s)"), rows, empty="no queues")


@app.command()
def stats(stage: StageOption = LOCAL, json_output: JsonOption = False) -> None:
    """How many messages wait, are worked on, or died."""
    access = open_stage(stage)
    found = states(access.sqs, access.outputs, stage, cloudwatch=None if stage == LOCAL else access.cloudwatch)
    if json_output:
        print_json([state.as_json() for state in found])
        return
    print_table(
        f"Queues of {stage}",
        ("queue", "waiting", "in flight", "delayed", "oldest (s)", "dead messages"),
        [
            (one.name, one.waiting, one.in_flight, one.delayed, one.oldest_age_seconds, one.dead_letters)
            for one in found
        ],
        empty="no queues",
    )


@app.command()
def send(
    queue: Annotated[str, typer.Argument(help="Name of the queue, such as ingest.")],
    stage: StageOption = LOCAL,
    body: Annotated[str | None, typer.Option(help="The message as JSON; standard input when left out.")] = None,
    execute: ExecuteOption = False,
    json_output: JsonOption = False,
) -> None:
    """Send one message, after checking that the consumer would take it."""
    from api_services.request_context import new_request_id, request_context
    from api_services.sqs import SqsQueueSender

    spec = spec_named(queue)
    message = checked_message(spec, sys.stdin.read() if body is None else body)
    access = open_stage(stage)
    url = url_of(access.outputs, spec.output, stage)
    request_id = new_request_id()
    if execute:
        with request_context(request_id):
            SqsQueueSender({spec.url_env_key: url}, lambda: access.sqs).send(spec, message)
    result = {"queue": spec.name, "stage": stage, "sent": execute, "requestId": request_id, "body": message.body()}
    if json_output:
        print_json(result)
    elif execute:
        typer.echo(f"sent to {spec.name} of {stage}, request id {request_id}")
    else:
        typer.echo(f"would send to {spec.name} of {stage}: {message.body()}\nadd --execute to send it")
