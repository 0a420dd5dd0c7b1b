"""Data sources answered without an account."""

import json

import pytest

from local.aws.invokes import ANSWERS, OFFLINE_ACCOUNT
from local.aws.values import Props


def answer(name: str, **arguments: object) -> Props:
    module, function = name.split(".")
    return ANSWERS[f"aws:{module}/{function}:{function}"](None, "eu-west-1", arguments)


def test_offline_there_is_an_example_account_and_the_stages_region() -> None:
    assert answer("index.getCallerIdentity")["accountId"] == OFFLINE_ACCOUNT
    assert answer("index.getRegion")["name"] == "eu-west-1"
    assert answer("index.getPartition")["partition"] == "aws"


def test_zones_follow_the_region() -> None:
    zones = answer("index.getAvailabilityZones")
    assert zones["names"] == ["eu-west-1a", "eu-west-1b", "eu-west-1c"]
    assert len(zones["zoneIds"]) == 3


def test_the_default_network_has_subnets_in_more_than_one_zone() -> None:
    assert answer("ec2.getVpc", default=True)["id"].startswith("vpc-")
    assert len(answer("ec2.getSubnets")["ids"]) >= 2


def test_a_policy_document_is_what_the_real_provider_writes() -> None:
    statement = {
        "sid": "Send",
        "actions": ["sqs:SendMessage", "sqs:GetQueueUrl"],
        "resources": ["arn:q"],
        "principals": [{"type": "AWS", "identifiers": ["arn:role"]}, {"type": "Service", "identifiers": ["a", "b"]}],
        "conditions": [{"test": "Bool", "variable": "aws:SecureTransport", "values": ["false"]}],
    }
    document = json.loads(answer("iam.getPolicyDocument", statements=[statement])["json"])
    assert document == {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Sid": "Send",
                "Effect": "Allow",
                "Action": ["sqs:GetQueueUrl", "sqs:SendMessage"],
                "Resource": "arn:q",
                "Principal": {"AWS": "arn:role", "Service": ["a", "b"]},
                "Condition": {"Bool": {"aws:SecureTransport": "false"}},
            }
        ],
    }


@pytest.mark.parametrize("effect", ["Allow", "Deny"])
def test_everyone_is_a_star(effect: str) -> None:
    statement = {"effect": effect, "actions": ["sqs:*"], "principals": [{"type": "*", "identifiers": ["*"]}]}
    document = json.loads(answer("iam.getPolicyDocument", statements=[statement])["json"])
    assert document["Statement"] == [{"Effect": effect, "Action": "sqs:*", "Principal": "*"}]
