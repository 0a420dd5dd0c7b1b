"""Sending a message by hand, as it is typed. SQS is moto's."""

import boto3
import pytest
from typer.testing import CliRunner

from api_services.queues import INGEST
from cli.queue.commands import app
from cli.stage_access import StageAccess

BODY = '{"documentId": "doc-1", "version": 2}'


@pytest.fixture
def access(aws: boto3.Session, monkeypatch: pytest.MonkeyPatch) -> StageAccess:
    made = StageAccess("dev", {}, aws)
    url = made.sqs.create_queue(QueueName=INGEST.physical_name("dev"))["QueueUrl"]
    made = StageAccess("dev", {INGEST.output: url}, aws)
    monkeypatch.setattr("cli.queue.commands.open_stage", lambda stage: made)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    return made


def test_a_message_is_sent_with_a_request_id_only_when_told(access: StageAccess) -> None:
    words = ["send", "ingest", "--body", BODY, "-s", "dev"]
    planned = CliRunner().invoke(app, words)
    assert "add --execute" in planned.stdout
    assert "Messages" not in access.sqs.receive_message(QueueUrl=access.outputs[INGEST.output])

    sent = CliRunner().invoke(app, [*words, "--execute"])
    assert sent.exit_code == 0
    (message,) = access.sqs.receive_message(
        QueueUrl=access.outputs[INGEST.output], MessageAttributeNames=["requestId"]
    ).get("Messages", [])
    assert INGEST.adapter.validate_json(message.get("Body", "")).version == 2
    assert message.get("MessageAttributes", {})["requestId"].get("StringValue", "") in sent.stdout
