"""Each check of `verify` sees the fault it is there for. AWS is moto's, in this process."""

import io
import json
import threading
import zipfile
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING, Any

import boto3
import pytest

from api_services.queues import INGEST, QUEUES
from api_services.secrets import MONGO_URI, SECRETS
from cli.verify.checks import check_api, check_mapping, check_queue, check_subscribers, verify

if TYPE_CHECKING:
    from types_boto3_lambda import LambdaClient
    from types_boto3_logs import CloudWatchLogsClient
    from types_boto3_secretsmanager import SecretsManagerClient
    from types_boto3_sns import SNSClient
    from types_boto3_sqs import SQSClient


@dataclass
class Stage:
    """A stage's clients and outputs."""

    sqs: "SQSClient"
    lambda_: "LambdaClient"
    logs: "CloudWatchLogsClient"
    secretsmanager: "SecretsManagerClient"
    sns: "SNSClient"
    outputs: dict[str, Any]


@pytest.fixture
def stage(aws: boto3.Session) -> Stage:
    made = Stage(
        sqs=aws.client("sqs"),
        lambda_=aws.client("lambda"),
        logs=aws.client("logs"),
        secretsmanager=aws.client("secretsmanager"),
        sns=aws.client("sns"),
        outputs={},
    )
    for spec in QUEUES:
        dlq = made.sqs.create_queue(QueueName=spec.dlq_physical_name("dev"))["QueueUrl"]
        dlq_arn = made.sqs.get_queue_attributes(QueueUrl=dlq, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        attributes: Any = {
            "VisibilityTimeout": str(spec.visibility_timeout_seconds),
            "RedrivePolicy": json.dumps({"deadLetterTargetArn": dlq_arn, "maxReceiveCount": spec.max_receive_count}),
        }
        made.outputs[spec.output] = made.sqs.create_queue(QueueName=spec.physical_name("dev"), Attributes=attributes)[
            "QueueUrl"
        ]
        made.outputs[spec.dlq_output] = dlq
    return made


def map_to_function(aws: boto3.Session, stage: Stage, **options: Any) -> str:
    """Connect the ingest queue with a function; answers the mapping's id."""
    role = aws.client("iam").create_role(RoleName="r", AssumeRolePolicyDocument="{}")["Role"]["Arn"]
    code = io.BytesIO()
    with zipfile.ZipFile(code, "w") as archive:
        archive.writestr("handler.py", "")
    stage.lambda_.create_function(
        FunctionName="f", Role=role, Runtime="python3.13", Handler="handler.handler", Code={"ZipFile": code.getvalue()}
    )
    attributes = stage.sqs.get_queue_attributes(QueueUrl=stage.outputs["ingestQueue"], AttributeNames=["QueueArn"])
    arguments: dict[str, Any] = {"BatchSize": 1, "FunctionResponseTypes": ["ReportBatchItemFailures"]} | options
    return stage.lambda_.create_event_source_mapping(
        EventSourceArn=attributes["Attributes"]["QueueArn"], FunctionName="f", **arguments
    )["UUID"]


def test_a_queue_that_equals_the_registry_is_right(stage: Stage) -> None:
    assert check_queue(stage, stage.outputs, "dev", INGEST) == (
        True,
        "visibility 940 s, 3 receives, then sophia-dev-ingest-dlq",
    )


def test_a_visibility_that_somebody_changed_is_seen(stage: Stage) -> None:
    stage.sqs.set_queue_attributes(QueueUrl=stage.outputs["ingestQueue"], Attributes={"VisibilityTimeout": "30"})
    ok, detail = check_queue(stage, stage.outputs, "dev", INGEST)
    assert not ok
    assert "(30," in detail
    assert "pulumi up -s dev" in detail


def test_a_queue_without_a_mapping_is_seen(stage: Stage) -> None:
    assert check_mapping(stage, stage.outputs, "dev", INGEST) == (False, "0 event source mappings; one is needed")


def test_a_right_mapping_is_right(aws: boto3.Session, stage: Stage) -> None:
    map_to_function(aws, stage)
    assert check_mapping(stage, stage.outputs, "dev", INGEST)[0]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"FunctionResponseTypes": []}, "does not report batch item failures"),
        ({"BatchSize": 7}, "takes 7 a batch"),
        ({"Enabled": False}, "is Disabled"),
    ],
)
def test_a_mapping_that_would_lose_or_hold_messages_is_seen(
    aws: boto3.Session, stage: Stage, options: dict[str, Any], said: str
) -> None:
    map_to_function(aws, stage, **options)
    ok, detail = check_mapping(stage, stage.outputs, "dev", INGEST)
    assert not ok
    assert said in detail


def test_alarms_that_nobody_hears_are_seen(stage: Stage) -> None:
    topic = stage.sns.create_topic(Name="alarms")["TopicArn"]
    assert not check_subscribers(stage.sns, topic)[0]
    stage.sns.subscribe(TopicArn=topic, Protocol="email", Endpoint="night@operations.example")
    assert check_subscribers(stage.sns, topic)[0]


@pytest.mark.parametrize(("status", "ok"), [(200, True), (503, False)])
def test_the_api_must_say_that_it_is_ready(status: int, ok: bool) -> None:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status if self.path == "/readyz" else 404)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            del format, args

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        assert check_api(f"http://127.0.0.1:{server.server_port}/")[0] is ok
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def findings(stage: Stage) -> dict[tuple[str, str], bool]:
    for spec in SECRETS:
        stage.secretsmanager.create_secret(Name=spec.physical_name("dev"))
    used = frozenset({MONGO_URI.name})
    return {
        (finding.check, finding.subject): finding.ok
        for finding in verify("dev", stage.outputs, stage, secrets_used=used, canary=False)
    }


def test_every_queue_is_checked_and_a_secret_without_a_value_is_seen(findings: dict[tuple[str, str], bool]) -> None:
    expected = {(check, spec.name) for spec in QUEUES for check in ("queue", "mapping", "function")}
    traced = {("tracing", "report-generate"), ("tracing", "ingest")}
    assert set(findings) == expected | traced | {("secret", "mongo-uri")}
    assert not findings["secret", "mongo-uri"]
    assert all(findings["queue", spec.name] for spec in QUEUES)


def test_a_check_that_cannot_be_made_is_a_finding_and_no_exception(stage: Stage) -> None:
    outputs = stage.outputs | {"apiUrl": "http://127.0.0.1:1"}
    api = next(
        finding
        for finding in verify("dev", outputs, stage, secrets_used=frozenset(), canary=False)
        if finding.check == "api"
    )
    assert (api.ok, "could not be checked" in api.detail) == (False, True)
