"""Every configured value is checked; each fault names the key, the rule and the YAML that mends it."""

import sys
from typing import Any

import pytest

from infra.config import placeholders, read_stage_config
from infra.config_reader import ConfigError
from tests.infra.engine import run_program, stage_values

CERTIFICATE = "arn:aws:acm:us-east-1:111122223333:certificate/00000000-0000-0000-0000-000000000000"
LOOPBACK = {"AWS_ENDPOINT_URL": "http://127.0.0.1:4566"}


def refused(stage: str, values: dict[str, str], environ: dict[str, str] | None = None) -> str:
    with pytest.raises(ConfigError) as error:
        read_stage_config(stage, values, environ or {})
    return str(error.value)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"logRetentionDays": None}, "sophia:logRetentionDays is missing; it must be one of 1, 3, 5"),
        ({"logRetentionDays": 31}, "sophia:logRetentionDays must be one of 1, 3, 5"),
        ({"logRetentionDays": "many"}, "got 'many'"),
        ({"alarmEmails": None}, "sophia:alarmEmails names nobody, so no alarm would reach anyone"),
        ({"alarmEmails": "oncall"}, "sophia:alarmEmails must be a list of e-mail addresses"),
        ({"alarmEmails": ["nobody"]}, "sophia:alarmEmails must be a list of e-mail addresses, got 'nobody'"),
        ({"alarmEmails": ["a@b.example", "a@b.example"]}, "sophia:alarmEmails names something twice"),
        ({"architecture": "sparc"}, "sophia:architecture must be one of x86_64, arm64, got 'sparc'"),
        ({"architecture": "host"}, "sophia:architecture must be one of x86_64, arm64, got 'host'"),
        ({"pythonVersion": "2.7"}, "sophia:pythonVersion must be one of 3.11, 3.12, 3.13, 3.14, got '2.7'"),
        ({"aws:region": None}, "aws:region is missing; it must be an AWS region"),
        ({"aws:region": "Ireland"}, "aws:region must be an AWS region, got 'Ireland'"),
        ({"maxConcurrency": "1"}, "sophia:maxConcurrency must be a whole number from 2 to 1000, got '1'"),
        ({"dashboard": "yes"}, "sophia:dashboard must be true or false, got 'yes'"),
        ({"logLevel": "LOUD"}, "sophia:logLevel must be one of DEBUG, INFO, WARNING, ERROR"),
        ({"mongoDatabase": "9 lives"}, "sophia:mongoDatabase must be a database name of up to 38 characters"),
        ({"apiImageTag": "a b"}, "sophia:apiImageTag must be an image tag, got 'a b'"),
        ({"apiDesiredTasks": 5, "apiMaxTasks": 4}, "sophia:apiMaxTasks is 4, below sophia:apiDesiredTasks, which is 5"),
        ({"apiDesiredTasks": 0}, "sophia:apiDesiredTasks must be a whole number from 1 to 100, got '0'"),
        ({"apiMemoryMb": 700}, "must be a whole number from 1024 to 4096 in steps of 1024, got '700'"),
        ({"apiCpu": 256, "apiMemoryMb": 4096}, "sophia:apiMemoryMb must be one of 512, 1024, 2048, got '4096'"),
        ({"apiCpu": 300}, "sophia:apiCpu must be one of 256, 512, 1024, 2048, 4096, got '300'"),
        ({"indexUrl": None}, "sophia:indexUrl must be the URL of a Turso database: functions share no file"),
        ({"indexUrl": "file:x.db"}, "sophia:indexUrl must be the URL of a Turso database: functions share no file"),
        (
            {"certificateArn": CERTIFICATE},
            "sophia:certificateArn must be of the region eu-west-1, got arn:aws:acm:us-ea",
        ),
        ({"certificateArn": "arn:x"}, "sophia:certificateArn must be the ARN of an ACM certificate, got 'arn:x'"),
        ({"vpcId": "vpc-0a1b2c3d"}, "sophia:loadBalancerSubnetIds needs subnets in two availability zones, got 0"),
        ({"taskSubnetIds": ["subnet-0a1b2c3d"]}, "sophia:vpcId is missing while subnets are named"),
        ({"langfusePublicKey": "pk"}, "sophia:langfuseBaseUrl is missing while sophia:langfusePublicKey is set"),
        ({"loseMessagesOf": ["nothing"]}, "sophia:loseMessagesOf names 'nothing'; there are interview-completed"),
        ({"operatorPrincipals": ["me"]}, "sophia:operatorPrincipals must be a list of ARNs of IAM roles"),
        ({"alarmEmail": "a@b.example"}, "sophia:alarmEmail in Pulumi.dev.yaml is not a setting of this project"),
        ({"aws:endpoints": [{"sqs": "http://x"}]}, "Stage 'dev' is on AWS, but aws:endpoints is configured"),
    ],
)
def test_a_wrong_value_is_refused_with_its_rule(changes: dict[str, Any], words: str) -> None:
    assert words in refused("dev", stage_values("dev", **changes))


def test_an_error_ends_with_the_yaml_to_add() -> None:
    assert refused("dev", stage_values("dev", logRetentionDays=31)).endswith(
        "Set it in Pulumi.dev.yaml:\n\nconfig:\n  sophia:logRetentionDays: 30"
    )
    assert refused("prod", stage_values("prod", alarmEmails=None)).endswith(
        'Set it in Pulumi.prod.yaml:\n\nconfig:\n  sophia:alarmEmails: ["oncall@sophia.example"]'
    )


@pytest.mark.parametrize("stage", ["", "Dev", "a_b", "-dev", "dev stage"])
def test_a_stage_is_named_in_lower_case_words(stage: str) -> None:
    assert "is not a valid name" in refused(stage, {})


@pytest.mark.parametrize("key", ["AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_SQS"])
def test_a_stage_on_aws_is_refused_where_an_endpoint_is_set(key: str) -> None:
    message = refused("prod", stage_values("prod"), {key: "http://127.0.0.1:4566"})
    assert message == f"Stage 'prod' is on AWS, but {key} is set. Unset it, or use the stage 'local'."


@pytest.mark.parametrize(
    "url",
    ["http://10.0.0.5:4566", "https://sqs.eu-west-1.amazonaws.com", "http://127.0.0.1.example:80", "http://[", "x"],
)
def test_the_local_stage_is_refused_anywhere_but_on_loopback(url: str) -> None:
    assert "may only reach this machine" in refused("local", stage_values("local"), {"AWS_ENDPOINT_URL": url})
    assert "may only reach this machine" in refused(
        "local", stage_values("local"), {**LOOPBACK, "AWS_ENDPOINT_URL_SQS": url}
    )


def test_the_local_stage_needs_its_emulator() -> None:
    assert "AWS_ENDPOINT_URL is not set. Run `./sophia up`." in refused("local", stage_values("local"))


@pytest.mark.parametrize("url", ["http://127.0.0.1:4566", "http://localhost:4566", "http://[::1]:4566"])
def test_the_local_stage_takes_the_hosts_python(url: str) -> None:
    config = read_stage_config("local", stage_values("local"), {"AWS_ENDPOINT_URL": url})
    assert config.python_version == f"{sys.version_info.major}.{sys.version_info.minor}"
    assert config.architecture in ("x86_64", "arm64")
    assert config.api is None


def test_example_values_are_told_of() -> None:
    config = read_stage_config("dev", stage_values("dev"), {})
    email, index = placeholders(config)
    assert "sophia:alarmEmails still holds the example address oncall@example.com" in email
    assert "sophia:indexUrl still holds the example of Pulumi.dev.yaml" in index
    keys = {sentence.split()[0] for sentence in placeholders(read_stage_config("prod", stage_values("prod"), {}))}
    assert keys == {"sophia:alarmEmails", "sophia:indexUrl", "sophia:certificateArn", "sophia:vpcId"}
    values = stage_values("dev", alarmEmails=["a@sophia.test"], indexUrl="libsql://sophia.test")
    assert not placeholders(read_stage_config("dev", values, {}))


def test_the_program_stops_at_a_wrong_value_before_it_declares_anything() -> None:
    with pytest.raises(ConfigError, match="logRetentionDays"):
        run_program("dev", stage_values("dev", logRetentionDays=31))


def test_a_missing_handler_stops_the_program_with_its_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    from infra import functions
    from infra.packaging import PackagingError

    def missing(handler: str, **_: object) -> None:
        raise PackagingError(f"handler '{handler}': functions/nowhere is not there; add the function's folder")

    monkeypatch.setattr(functions, "build_function", missing)
    config = read_stage_config("dev", stage_values("dev"), {})
    with pytest.raises(functions.pulumi.RunError, match="functions/nowhere is not there; add the function's folder"):
        functions.package("functions.nowhere.handler.handler", config)
