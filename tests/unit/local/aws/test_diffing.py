"""Which changes there are, and which of them replace."""

import json
from typing import Any

import pytest

from local.aws.catalog import TABLE
from local.aws.diffing import Change, Difference, diff
from local.aws.values import UNKNOWN, Props

SIGNATURE = "4dabf18193072939515e22adb298388d"
UPDATE = Change("update", replaces=False)


def changes(kind: str, old: Props, new: Props, **outputs: Any) -> Difference:
    return diff(TABLE[kind], old, outputs, new, {})


def test_equal_inputs_are_no_difference() -> None:
    inputs = {"name": "a", "visibilityTimeoutSeconds": 60}
    assert changes("aws:sqs/queue:Queue", inputs, dict(inputs)).changes == {}


def test_a_visibility_timeout_changes_in_place() -> None:
    found = changes("aws:sqs/queue:Queue", {"visibilityTimeoutSeconds": 60}, {"visibilityTimeoutSeconds": 90})
    assert found.changes == {"visibilityTimeoutSeconds": UPDATE}
    assert found.replaces == []


@pytest.mark.parametrize(
    ("kind", "name", "old", "new"),
    [
        ("aws:sqs/queue:Queue", "name", "a", "b"),
        ("aws:sqs/queue:Queue", "fifoQueue", False, True),
        ("aws:sqs/queuePolicy:QueuePolicy", "queueUrl", "a", "b"),
        ("aws:sqs/redrivePolicy:RedrivePolicy", "queueUrl", "a", "b"),
        ("aws:sqs/redriveAllowPolicy:RedriveAllowPolicy", "queueUrl", "a", "b"),
        ("aws:lambda/function:Function", "name", "a", "b"),
        ("aws:lambda/function:Function", "packageType", "Zip", "Image"),
        ("aws:lambda/eventSourceMapping:EventSourceMapping", "eventSourceArn", "a", "b"),
        ("aws:iam/role:Role", "name", "a", "b"),
        ("aws:iam/role:Role", "path", "/", "/x/"),
        ("aws:iam/rolePolicy:RolePolicy", "role", "a", "b"),
        ("aws:cloudwatch/logGroup:LogGroup", "name", "a", "b"),
        ("aws:cloudwatch/metricAlarm:MetricAlarm", "name", "a", "b"),
        ("aws:secretsmanager/secret:Secret", "name", "a", "b"),
        ("aws:scheduler/schedule:Schedule", "groupName", "a", "b"),
        ("aws:sns/topicSubscription:TopicSubscription", "endpoint", "a", "b"),
        ("aws:kms/key:Key", "multiRegion", False, True),
    ],
)
def test_what_aws_replaces_is_replaced(kind: str, name: str, old: object, new: object) -> None:
    assert changes(kind, {name: old}, {name: new}).replaces == [name]


@pytest.mark.parametrize(
    ("kind", "name", "old", "new"),
    [
        ("aws:lambda/function:Function", "handler", "a", "b"),
        ("aws:lambda/function:Function", "architectures", ["x86_64"], ["arm64"]),
        ("aws:lambda/eventSourceMapping:EventSourceMapping", "functionName", "a", "b"),
        ("aws:lambda/eventSourceMapping:EventSourceMapping", "batchSize", 1, 2),
        ("aws:iam/role:Role", "assumeRolePolicy", '{"a":1}', '{"a":2}'),
        ("aws:cloudwatch/logGroup:LogGroup", "retentionInDays", 1, 14),
        ("aws:secretsmanager/secret:Secret", "description", "a", "b"),
        ("aws:scheduler/schedule:Schedule", "scheduleExpression", "rate(1 minute)", "rate(2 minutes)"),
    ],
)
def test_what_aws_changes_in_place_is_updated(kind: str, name: str, old: object, new: object) -> None:
    assert changes(kind, {name: old}, {name: new}) == Difference({name: UPDATE})


def test_a_replaced_resource_with_a_stated_name_goes_before_its_successor_comes() -> None:
    kind = "aws:iam/role:Role"
    kept = changes(kind, {"name": "r", "path": "/"}, {"name": "r", "path": "/x/"})
    renamed = changes(kind, {"name": "r"}, {"name": "s"})
    assert kept.delete_before_replace, "or the new one would take over the old one, which is then deleted"
    assert not renamed.delete_before_replace


def test_a_document_in_other_order_is_no_difference() -> None:
    one, other = json.dumps({"a": 1, "b": [2]}, indent=2), '{"b":[2],"a":1}'
    assert changes("aws:iam/rolePolicy:RolePolicy", {"policy": one}, {"policy": other}).changes == {}


def test_a_receive_count_as_text_is_no_difference() -> None:
    old = '{"deadLetterTargetArn":"arn","maxReceiveCount":"3"}'
    new = '{"deadLetterTargetArn":"arn","maxReceiveCount":3}'
    assert changes("aws:sqs/redrivePolicy:RedrivePolicy", {"redrivePolicy": old}, {"redrivePolicy": new}).changes == {}
    worse = new.replace("3", "4")
    assert changes("aws:sqs/queue:Queue", {"redrivePolicy": old}, {"redrivePolicy": worse}).changes


def test_a_default_spelled_out_is_no_difference() -> None:
    assert changes("aws:sqs/queue:Queue", {}, {"delaySeconds": 0, "visibilityTimeoutSeconds": 30}).changes == {}
    assert changes("aws:lambda/function:Function", {"timeout": 3}, {}).changes == {}
    added = changes("aws:sqs/queue:Queue", {}, {"delaySeconds": 5})
    removed = changes("aws:sqs/queue:Queue", {"delaySeconds": 5}, {})
    assert added.changes == {"delaySeconds": Change("add", replaces=False)}
    assert removed.changes == {"delaySeconds": Change("delete", replaces=False)}


def test_lists_that_aws_takes_as_sets_have_no_order() -> None:
    kind = "aws:cloudwatch/metricAlarm:MetricAlarm"
    assert changes(kind, {"alarmActions": ["a", "b"]}, {"alarmActions": ["b", "a"]}).changes == {}
    assert changes(kind, {"alarmActions": ["a", "b"]}, {"alarmActions": ["a"]}).changes


def test_a_value_still_unknown_is_a_change() -> None:
    assert changes("aws:lambda/function:Function", {"role": "a"}, {"role": UNKNOWN}).changes == {"role": UPDATE}


def test_code_changes_with_its_hash_alone() -> None:
    def code(digest: str, path: str) -> Props:
        return {"code": {SIGNATURE: "0def7320c3a5731c473e5ecbe6d01bc7", "hash": digest, "path": path}}

    kind = "aws:lambda/function:Function"
    assert changes(kind, code("h1", "/a"), code("h1", "/b")).changes == {}
    assert changes(kind, code("h1", "/a"), code("h2", "/a")).changes == {"code": UPDATE}


def test_a_function_named_by_its_arn_is_the_same_function() -> None:
    kind = "aws:lambda/eventSourceMapping:EventSourceMapping"
    arn = "arn:aws:lambda:eu-west-1:000000000000:function:settle"
    assert changes(kind, {"functionName": arn}, {"functionName": "settle"}).changes == {}
    assert changes(kind, {"functionName": arn}, {"functionName": "other"}).changes


def test_tags_change_in_place_and_default_tags_count() -> None:
    row = TABLE["aws:sqs/queue:Queue"]
    assert diff(row, {"tags": {"a": "1"}}, {}, {"tags": {"a": "2"}}, {}).changes == {"tags": UPDATE}
    deployed: Props = {"tagsAll": {"stage": "local"}}
    assert diff(row, {}, deployed, {}, {"stage": "local"}).changes == {}
    assert diff(row, {}, deployed, {}, {"stage": "other"}).changes == {"tagsAll": UPDATE}


def test_types_without_a_row_are_compared_by_value() -> None:
    assert diff(None, {"cpu": 1, "__defaults": []}, {}, {"cpu": 1}, {}).changes == {}
    assert diff(None, {"cpu": 1}, {}, {"cpu": 2}, {}).changes == {"cpu": UPDATE}
