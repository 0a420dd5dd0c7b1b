"""Loopback or nothing: where the plugin may send calls."""

import json
import socket

import pytest

from local.aws.configuration import (
    Configuration,
    ConfigurationRefusedError,
    forget_credentials,
    is_loopback,
    read_configuration,
    require_answer,
)

EMULATOR = "http://127.0.0.1:4566"


@pytest.mark.parametrize("url", [EMULATOR, "http://localhost:4566", "https://[::1]:4566", "http://127.8.9.1"])
def test_this_machine_is_accepted(url: str) -> None:
    assert is_loopback(url)


@pytest.mark.parametrize(
    "url",
    [
        "https://sqs.eu-west-1.amazonaws.com",
        "http://127.0.0.1@sqs.eu-west-1.amazonaws.com",
        "http://127.0.0.1.example.com:4566",
        "http://localhost.example.com",
        "http://10.0.0.7:4566",
        "http://0.0.0.0:4566",
        "http://2130706433:4566",
        "http://127.0.0.1:port",
        "ftp://127.0.0.1",
        "127.0.0.1:4566",
        "http://[::1",
        "",
    ],
)
def test_what_could_be_elsewhere_is_refused(url: str) -> None:
    assert not is_loopback(url)


def test_an_endpoint_elsewhere_is_refused_by_name() -> None:
    with pytest.raises(ConfigurationRefusedError, match="AWS_ENDPOINT_URL is 'https://sqs"):
        read_configuration({}, {"AWS_ENDPOINT_URL": "https://sqs.eu-west-1.amazonaws.com"})


def test_one_endpoint_of_the_stack_elsewhere_is_refused_even_beside_a_good_one() -> None:
    endpoints = json.dumps([{"sqs": EMULATOR, "lambda": "https://lambda.eu-west-1.amazonaws.com"}])
    for environment in ({}, {"AWS_ENDPOINT_URL": EMULATOR}):
        with pytest.raises(ConfigurationRefusedError, match="lambda is 'https://lambda"):
            read_configuration({"endpoints": endpoints}, environment)


def test_no_endpoint_is_refused_with_the_remedy() -> None:
    for environment in ({}, {"AWS_ENDPOINT_URL": ""}):
        with pytest.raises(ConfigurationRefusedError, match=r"no endpoint.*\./sophia up"):
            read_configuration({}, environment)


def test_the_environment_says_where_the_emulator_is_now() -> None:
    stale = json.dumps([{"sqs": "http://127.0.0.1:1111"}])
    configuration = read_configuration({"endpoints": stale}, {"AWS_ENDPOINT_URL": EMULATOR})
    assert configuration.endpoint_of("sqs") == EMULATOR


def test_a_service_without_an_endpoint_is_refused_not_sent_to_aws() -> None:
    configuration = read_configuration({"endpoints": [{"sqs": EMULATOR, "cloudwatchlogs": EMULATOR}]}, {})
    assert configuration.endpoint_of("logs") == EMULATOR
    with pytest.raises(ConfigurationRefusedError, match="'iam'"):
        configuration.endpoint_of("iam")


def test_offline_asks_for_no_endpoint_and_keeps_none() -> None:
    environment = {"SOPHIA_AWS_OFFLINE": "1", "AWS_ENDPOINT_URL": "https://sqs.eu-west-1.amazonaws.com"}
    configuration = read_configuration({"region": "eu-central-1"}, environment)
    assert configuration.offline
    assert configuration.endpoint is None
    assert configuration.region == "eu-central-1"
    require_answer(configuration)


def test_default_tags_arrive_as_json_text() -> None:
    tags = json.dumps({"tags": {"stage": "local"}})
    configuration = read_configuration({"defaultTags": tags}, {"AWS_ENDPOINT_URL": EMULATOR})
    assert configuration.default_tags == {"stage": "local"}


def test_an_emulator_that_does_not_answer_is_named() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(ConfigurationRefusedError, match=f"emulator not reachable at {url}"):
            require_answer(Configuration(endpoint=url))


def test_the_users_keys_and_profiles_leave_the_process() -> None:
    environment = {"AWS_PROFILE": "work", "AWS_ACCESS_KEY_ID": "AKIA", "AWS_SESSION_TOKEN": "t", "HOME": "/h"}
    forget_credentials(environment)
    assert not {"AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_SESSION_TOKEN"} & environment.keys()
    assert environment["AWS_CONFIG_FILE"] == environment["AWS_SHARED_CREDENTIALS_FILE"] == "/dev/null"
    assert environment["HOME"] == "/h"
