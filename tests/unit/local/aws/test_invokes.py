"""Data sources answered without an account."""

from local.aws.invokes import ANSWERS, OFFLINE_ACCOUNT
from local.aws.values import Props


def answer(name: str, **arguments: object) -> Props:
    module, function = name.split(".")
    return ANSWERS[f"aws:{module}/{function}:{function}"](None, "eu-west-1", arguments)


def test_offline_there_is_an_example_account() -> None:
    assert answer("index.getCallerIdentity")["accountId"] == OFFLINE_ACCOUNT


def test_the_default_network_has_subnets_in_more_than_one_zone() -> None:
    assert answer("ec2.getVpc", default=True)["id"].startswith("vpc-")
    assert len(answer("ec2.getSubnets")["ids"]) >= 2
