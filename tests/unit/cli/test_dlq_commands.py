"""The commands of an operator at night, as they are typed. AWS is moto's; the failure store is out of reach."""

import json
from collections.abc import Callable
from pathlib import Path

import boto3
import pytest
from typer.testing import CliRunner, Result

from api_services.delivery.dead_letters import DeadLetterReason, with_reason
from api_services.errors import InvalidInputError
from api_services.queues import QUEUES
from cli.dlq.commands import app
from cli.stage_access import StageAccess

BODY = '{"interviewId":"iv-1"}'
Run = Callable[..., Result]


@pytest.fixture
def access(aws: boto3.Session, monkeypatch: pytest.MonkeyPatch) -> StageAccess:
    outputs: dict[str, str] = {}
    made = StageAccess("dev", outputs, aws)
    for spec in QUEUES:
        dlq = made.sqs.create_queue(QueueName=spec.dlq_physical_name("dev"))["QueueUrl"]
        arn = made.sqs.get_queue_attributes(QueueUrl=dlq, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        policy = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": 3})
        queue = made.sqs.create_queue(QueueName=spec.physical_name("dev"), Attributes={"RedrivePolicy": policy})
        outputs[spec.output], outputs[spec.dlq_output] = queue["QueueUrl"], dlq
    aws.client("secretsmanager").create_secret(Name="sophia/dev/mongo-uri")
    monkeypatch.setattr("cli.dlq.commands.open_stage", lambda stage: made)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    monkeypatch.setattr("cli.dlq.messages._LONG_POLL_SECONDS", 0)
    return made


@pytest.fixture
def run(access: StageAccess) -> Run:
    del access
    return lambda *words: CliRunner().invoke(app, [*words, "-s", "dev"])


def bury(access: StageAccess, output: str = "reportGenerateDlq", body: str = BODY) -> str:
    reason = DeadLetterReason(
        error_class="QuotaExhaustedError",
        code="quota_exhausted",
        queue="report-generate",
        message_id="m",
        receive_count=1,
    )
    attributes = with_reason({}, reason)
    return access.sqs.send_message(QueueUrl=access.outputs[output], MessageBody=body, MessageAttributes=attributes)[
        "MessageId"
    ]


def waiting(access: StageAccess) -> tuple[int, int]:
    counts = [
        access.sqs.get_queue_attributes(QueueUrl=access.outputs[name], AttributeNames=["ApproximateNumberOfMessages"])
        for name in ("reportGenerateQueue", "reportGenerateDlq")
    ]
    return int(counts[0]["Attributes"]["ApproximateNumberOfMessages"]), int(
        counts[1]["Attributes"]["ApproximateNumberOfMessages"]
    )


def test_the_list_covers_every_queue_and_shows_no_body(access: StageAccess, run: Run) -> None:
    bury(access)
    bury(access, "ingestDlq", body="s3cret")
    result = run("list", "--json")
    listed = json.loads(result.stdout)
    assert [(one["queue"], one["errorCode"]) for one in listed] == [
        ("report-generate", "quota_exhausted"),
        ("ingest", "quota_exhausted"),
    ]
    assert "s3cret" not in result.output
    assert "reasons come from the messages alone" in result.stderr


def test_a_letter_is_shown_whole_when_it_is_asked_for(access: StageAccess, run: Run) -> None:
    message = bury(access)
    shown = json.loads(run("show", "report-generate", message, "--json").stdout)
    assert (shown["body"], shown["errorCode"]) == (BODY, "quota_exhausted")


def test_redrive_prints_its_plan_and_moves_only_when_told(access: StageAccess, run: Run) -> None:
    bury(access)
    planned = run("redrive", "report-generate")
    assert "would move 1 of 1 messages to sophia-dev-report-generate" in planned.stdout
    assert waiting(access) == (0, 1)
    assert run("redrive", "report-generate", "--execute").exit_code == 0
    assert waiting(access) == (1, 0)


def test_purge_asks_for_the_queues_name(access: StageAccess, run: Run, tmp_path: Path) -> None:
    bury(access)
    backup = str(tmp_path / "messages.jsonl")
    assert "add --execute" in run("purge", "report-generate", "--backup", backup).stdout
    refused = run("purge", "report-generate", "--backup", backup, "--confirm", "ingest", "--execute")
    assert isinstance(refused.exception, InvalidInputError)
    assert waiting(access) == (0, 1)
    run("purge", "report-generate", "--backup", backup, "--confirm", "report-generate", "--execute")
    assert waiting(access) == (0, 0)
    run("restore", "report-generate", backup, "--execute")
    assert waiting(access) == (0, 1)
