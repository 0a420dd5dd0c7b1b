"""Secrets are written, listed and never shown. Secrets Manager is moto's, in this process."""

import hashlib
import json
from typing import TYPE_CHECKING

import boto3
import pytest

from api_services.errors import InvalidInputError, NotFoundError
from api_services.secrets import API_KEYS, MONGO_URI, OPENAI_API_KEY, SECRETS
from cli.secrets.lib import MAX_BYTES, add_api_key, set_value, spec_named, states

if TYPE_CHECKING:
    from types_boto3_secretsmanager import SecretsManagerClient


@pytest.fixture
def client(aws: boto3.Session) -> "SecretsManagerClient":
    made = aws.client("secretsmanager")
    for spec in SECRETS:
        made.create_secret(Name=spec.physical_name("dev"))
    return made


def value_of(client: "SecretsManagerClient", name: str) -> str:
    return client.get_secret_value(SecretId=name)["SecretString"]


def test_a_value_is_written_and_the_list_says_only_that_there_is_one(client: "SecretsManagerClient") -> None:
    set_value(client, OPENAI_API_KEY, "dev", "sk-1")
    assert value_of(client, "sophia/dev/openai-api-key") == "sk-1"
    listed = {state.name: state.has_value for state in states(client, "dev")}
    assert listed == {spec.name: spec is OPENAI_API_KEY for spec in SECRETS}
    assert "sk-1" not in repr(states(client, "dev"))


def test_a_stage_without_the_secret_is_told_to_deploy_first(client: "SecretsManagerClient") -> None:
    with pytest.raises(NotFoundError, match="pulumi up -s prod"):
        set_value(client, OPENAI_API_KEY, "prod", "sk-1")
    assert not any(state.exists for state in states(client, "prod"))


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("openai-api-key", "", "empty"),
        ("openai-api-key", "s3cret" * MAX_BYTES, "at most"),
        ("mongo-uri", "postgres://s3cret@h", "mongodb://"),
        ("api-keys", "s3cret", "digests"),
        ("api-keys", '["s3cret"]', "digests"),
        ("api-keys", '{"root": []}', "digests"),
        ("api-keys", '{"bot": ["s3cret"]}', "digests"),
        ("api-keys", '{"bot": "s3cret"}', "digests"),
    ],
)
def test_a_value_of_the_wrong_form_is_refused_and_not_repeated(
    client: "SecretsManagerClient", name: str, value: str, said: str
) -> None:
    with pytest.raises(InvalidInputError, match=said) as caught:
        set_value(client, spec_named(name), "dev", value)
    assert "s3cret" not in str(caught.value)
    assert not next(state for state in states(client, "dev") if state.name == name).has_value


def test_an_unknown_secret_is_answered_with_the_known_names() -> None:
    with pytest.raises(InvalidInputError, match=MONGO_URI.name):
        spec_named("mongo")


def test_a_new_key_is_stored_as_a_digest_beside_the_others(client: "SecretsManagerClient") -> None:
    first, second = add_api_key(client, "dev", "bot"), add_api_key(client, "dev", "admin")
    stored = value_of(client, API_KEYS.physical_name("dev"))
    assert json.loads(stored) == {
        "bot": [hashlib.sha256(first.encode()).hexdigest()],
        "admin": [hashlib.sha256(second.encode()).hexdigest()],
    }
    assert first not in stored


def test_a_key_is_not_added_to_something_that_is_no_list_of_digests(client: "SecretsManagerClient") -> None:
    client.put_secret_value(SecretId=API_KEYS.physical_name("dev"), SecretString="plain")
    with pytest.raises(InvalidInputError, match="set it anew"):
        add_api_key(client, "dev", "bot")
    assert value_of(client, API_KEYS.physical_name("dev")) == "plain"
