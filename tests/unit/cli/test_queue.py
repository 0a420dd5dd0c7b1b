"""The state of the queues, and messages an operator sends. SQS is moto's, in this process."""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import boto3
import pytest

from api_services.errors import InvalidInputError, NotFoundError
from api_services.queues import INGEST, INTERVIEW_COMPLETED, QUEUES
from cli.queue.lib import checked_message, spec_named, states

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient


@pytest.fixture
def sqs(aws: boto3.Session) -> "SQSClient":
    return aws.client("sqs")


@pytest.fixture
def outputs(sqs: "SQSClient") -> dict[str, str]:
    urls: dict[str, str] = {}
    for spec in QUEUES:
        urls[spec.output] = sqs.create_queue(QueueName=spec.physical_name("dev"))["QueueUrl"]
        urls[spec.dlq_output] = sqs.create_queue(QueueName=spec.dlq_physical_name("dev"))["QueueUrl"]
    return urls


def test_a_state_counts_what_waits_what_is_worked_on_and_what_died(sqs: "SQSClient", outputs: dict[str, str]) -> None:
    for _ in range(3):
        sqs.send_message(QueueUrl=outputs["ingestQueue"], MessageBody="x")
    sqs.receive_message(QueueUrl=outputs["ingestQueue"])
    sqs.send_message(QueueUrl=outputs["ingestQueue"], MessageBody="x", DelaySeconds=60)
    sqs.send_message(QueueUrl=outputs["ingestDlq"], MessageBody="x")
    state = next(state for state in states(sqs, outputs, "dev") if state.name == "ingest")
    assert state.as_json() == {
        "name": "ingest",
        "waiting": 2,
        "inFlight": 1,
        "delayed": 1,
        "oldestAgeSeconds": None,
        "deadLetters": 1,
    }


def test_the_age_of_the_oldest_message_is_the_latest_figure_of_cloudwatch(
    aws: boto3.Session, sqs: "SQSClient", outputs: dict[str, str]
) -> None:
    cloudwatch = aws.client("cloudwatch")
    now = datetime.now(UTC)
    for minutes, age in ((5, 400), (1, 90)):
        cloudwatch.put_metric_data(
            Namespace="AWS/SQS",
            MetricData=[
                {
                    "MetricName": "ApproximateAgeOfOldestMessage",
                    "Dimensions": [{"Name": "QueueName", "Value": INGEST.physical_name("dev")}],
                    "Timestamp": now - timedelta(minutes=minutes),
                    "Value": age,
                }
            ],
        )
    ages = {state.name: state.oldest_age_seconds for state in states(sqs, outputs, "dev", cloudwatch=cloudwatch)}
    assert ages == {spec.name: 90 if spec is INGEST else None for spec in QUEUES}


def test_a_stage_that_is_not_deployed_says_so(sqs: "SQSClient") -> None:
    with pytest.raises(NotFoundError, match="interviewCompletedQueue; deploy it first"):
        states(sqs, {}, "dev")


def test_an_unknown_queue_is_answered_with_the_known_names() -> None:
    with pytest.raises(InvalidInputError, match=", ".join(spec.name for spec in QUEUES)):
        spec_named("interviews")


def test_a_message_that_the_consumer_would_drop_is_not_sent() -> None:
    with pytest.raises(InvalidInputError, match="documentId: Field required") as caught:
        checked_message(INGEST, '{"version": 1, "secret": "s3cret"}')
    assert "s3cret" not in str(caught.value)
    with pytest.raises(InvalidInputError, match="would drop"):
        checked_message(INTERVIEW_COMPLETED, "not json")
    assert checked_message(INGEST, '{"documentId": "doc-1", "version": 2}').version == 2
