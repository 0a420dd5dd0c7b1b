"""What is refused at preview, and the names given to unnamed resources."""

import pytest

from local.aws.catalog import TABLE
from local.aws.checking import Checked, check
from local.aws.values import UNKNOWN, Props

QUEUE = TABLE["aws:sqs/queue:Queue"]


def checked(news: Props, olds: Props | None = None, *, name: str = "jobs", seed: bytes = b"s", **more: bool) -> Checked:
    return check(QUEUE, name, news, olds or {}, seed, region="eu-west-1", offline=more.get("offline", False))


def test_an_input_without_meaning_here_is_refused_with_resource_and_input() -> None:
    result = checked({"namePrefix": "x", "delaySeconds": 1})
    ((key, sentence),) = result.failures
    assert key == "namePrefix"
    assert "'namePrefix'" in sentence
    assert "aws:sqs/queue:Queue 'jobs'" in sentence


def test_offline_every_input_passes() -> None:
    assert checked({"namePrefix": "x"}, offline=True).failures == []


def test_an_unnamed_resource_gets_its_name_from_the_seed() -> None:
    first = checked({}, seed=b"one").inputs["name"]
    assert first == checked({}, seed=b"one").inputs["name"], "a preview and its `up` must agree"
    assert first != checked({}, seed=b"two").inputs["name"], "a replacement needs another name"
    assert first.startswith("jobs-")
    assert len(first) == len("jobs-") + 7


def test_a_name_once_given_is_kept() -> None:
    assert checked({}, {"name": "jobs-abcdef0"}, seed=b"other").inputs["name"] == "jobs-abcdef0"


def test_a_stated_name_wins_and_fifo_queues_end_in_fifo() -> None:
    assert checked({"name": "mine"}).inputs["name"] == "mine"
    assert checked({"fifoQueue": True}).inputs["name"].endswith(".fifo")


def test_a_name_longer_than_aws_allows_is_refused_with_both_numbers() -> None:
    ((key, sentence),) = checked({}, name="q" * 80).failures
    assert key == "name"
    assert "88 characters and AWS allows 80" in sentence


def test_documents_are_stored_canonical_and_unknown_ones_left_alone() -> None:
    assert checked({"policy": '{ "b": 1, "a": 2 }'}).inputs["policy"] == '{"a":2,"b":1}'
    assert checked({"policy": UNKNOWN}).inputs["policy"] == UNKNOWN


@pytest.mark.parametrize("region", ["us-east-1", "eu-central-1"])
def test_another_region_is_refused(region: str) -> None:
    assert checked({"region": region}).failures == [
        ("region", f"the local stage has one region, eu-west-1, and 'jobs' states '{region}'")
    ]
    assert checked({"region": "eu-west-1"}).failures == []


def test_a_secret_value_is_refused_before_anything_is_written() -> None:
    row = TABLE["aws:secretsmanager/secretVersion:SecretVersion"]
    result = check(row, "v", {"secretString": "x"}, {}, b"", region="eu-west-1", offline=False)
    ((_, sentence),) = result.failures
    assert "./sophia secrets set" in sentence


def test_what_the_engine_left_in_old_inputs_is_dropped() -> None:
    assert "__defaults" not in checked({"__defaults": [], "delaySeconds": None}).inputs
    assert "delaySeconds" not in checked({"delaySeconds": None}).inputs
