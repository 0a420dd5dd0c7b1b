"""Every row of the table through the real engine and the real emulator."""

from typing import Any

import boto3
import pytest

from local.aws.archives import zip_bytes
from local.aws.catalog import TABLE
from local.aws.clients import EmulatorCall
from local.aws.configuration import Configuration
from local.emulator import Emulator
from tests.integration.local.aws.conftest import MakeStack
from tests.integration.local.aws.engine import Stack

pytestmark = pytest.mark.integration


def client(emulator: Emulator, service: str) -> Any:
    session: Any = boto3.Session(
        aws_access_key_id="test", aws_secret_access_key="test", region_name=emulator.environ["AWS_REGION"]
    )
    return session.client(service, endpoint_url=emulator.endpoint_url)


def leftovers(emulator: Emulator) -> dict[str, list[str]]:
    """What the emulator has of the program's types, by type; keys that wait for their deletion are gone."""
    kms, logs = client(emulator, "kms"), client(emulator, "logs")
    keys = [kms.describe_key(KeyId=key["KeyId"])["KeyMetadata"] for key in kms.list_keys()["Keys"]]
    scheduler, cloudwatch, iam = (client(emulator, name) for name in ("scheduler", "cloudwatch", "iam"))
    functions, sns = client(emulator, "lambda"), client(emulator, "sns")
    found = {
        "queues": client(emulator, "sqs").list_queues().get("QueueUrls", []),
        "functions": [item["FunctionName"] for item in functions.list_functions()["Functions"]],
        "mappings": [item["UUID"] for item in functions.list_event_source_mappings()["EventSourceMappings"]],
        "roles": [item["RoleName"] for item in iam.list_roles()["Roles"]],
        "policies": [item["PolicyName"] for item in iam.list_policies(Scope="Local")["Policies"]],
        "log groups": [item["logGroupName"] for item in logs.describe_log_groups()["logGroups"]],
        "filters": [item["filterName"] for item in logs.describe_metric_filters()["metricFilters"]],
        "alarms": [item["AlarmName"] for item in cloudwatch.describe_alarms()["MetricAlarms"]],
        "dashboards": [item["DashboardName"] for item in cloudwatch.list_dashboards()["DashboardEntries"]],
        "secrets": [item["Name"] for item in client(emulator, "secretsmanager").list_secrets()["SecretList"]],
        "schedules": [item["Name"] for item in scheduler.list_schedules()["Schedules"]],
        "groups": [item["Name"] for item in scheduler.list_schedule_groups()["ScheduleGroups"]],
        "topics": [item["TopicArn"] for item in sns.list_topics()["Topics"]],
        "subscriptions": [item["SubscriptionArn"] for item in sns.list_subscriptions()["Subscriptions"]],
        "keys": [item["KeyId"] for item in keys if item["KeyState"] != "PendingDeletion"],
        "buckets": [item["Name"] for item in client(emulator, "s3").list_buckets()["Buckets"]],
        "aliases": [item["AliasName"] for item in kms.list_aliases()["Aliases"]],
    }
    found["groups"] = [name for name in found["groups"] if name != "default"]
    return {kind: names for kind, names in found.items() if names}


def assert_reads_back(stack: Stack, emulator: Emulator) -> None:
    """The emulator gives back every stated input whose row says so, with the stated value."""
    call = EmulatorCall(Configuration(region="eu-west-1", endpoint=emulator.endpoint_url))
    for resource in stack.resources():
        row = TABLE.get(resource["type"])
        if row is None:
            continue
        inputs = {key: value for key, value in resource["inputs"].items() if key != "tags"}
        found = row.observe(call, resource["id"], {**resource["outputs"], **inputs})
        assert found is not None, resource["urn"]
        for name, value in inputs.items():
            prop = row.properties[name]
            if prop.write_only or "ciphertext" in str(value):
                continue
            assert name in found, f"{resource['urn']}: {name} is not read back, so it must be write_only"
            assert prop.same(value, found[name]), f"{resource['urn']}: {name} is {value!r}, read back {found[name]!r}"


def test_every_type_deploys_without_drift_and_leaves_nothing(make_stack: MakeStack, emulator: Emulator) -> None:
    before = leftovers(emulator)
    stack = make_stack("every_type")
    stack.succeeds("up", "--yes", "--skip-preview")

    deployed = {resource["type"] for resource in stack.resources()}
    assert {kind for kind, row in TABLE.items() if not row.refusal} <= deployed, "a row that no test deploys"
    assert_reads_back(stack, emulator)
    assert "hush-hush-token" not in stack.succeeds("stack", "export"), "a secret input is a secret output"

    stack.succeeds("preview", "--expect-no-changes")
    stack.succeeds("up", "--yes", "--skip-preview", "--expect-no-changes")
    stack.succeeds("refresh", "--yes", "--skip-preview", "--expect-no-changes")
    stack.succeeds("preview", "--expect-no-changes")

    stack.succeeds("destroy", "--yes", "--skip-preview")
    assert leftovers(emulator) == before


def test_what_is_there_without_state_is_taken_over(make_stack: MakeStack, emulator: Emulator) -> None:
    stack = make_stack("every_type")
    stack.succeeds("up", "--yes", "--skip-preview")
    functions, sqs, sns = (client(emulator, name) for name in ("lambda", "sqs", "sns"))
    package = functions.get_function(FunctionName="rows-function")["Configuration"]["CodeSha256"]
    tampered = {"FunctionName": "rows-function", "ZipFile": zip_bytes({"assets": {"other.py": {"text": "x = 1"}}})}
    assert functions.update_function_code(**tampered)["CodeSha256"] != package
    sqs.set_queue_attributes(
        QueueUrl=sqs.get_queue_url(QueueName="rows-queue")["QueueUrl"],
        Attributes={"VisibilityTimeout": "371", "MessageRetentionPeriod": "60"},
    )
    topic = next(item["TopicArn"] for item in sns.list_topics()["Topics"] if ":topic-" in item["TopicArn"])
    sns.set_topic_attributes(TopicArn=topic, AttributeName="DisplayName", AttributeValue="Other")
    stack.forget_state()
    stack.succeeds("up", "--yes", "--skip-preview")
    stack.succeeds("refresh", "--yes", "--skip-preview", "--expect-no-changes")
    assert functions.get_function(FunctionName="rows-function")["Configuration"]["CodeSha256"] == package
    mappings = functions.list_event_source_mappings()["EventSourceMappings"]
    assert len(mappings) == 1, "a second mapping would deliver every message to two pollers"
