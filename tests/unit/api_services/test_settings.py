"""Settings are read once, from variables or from the secrets whose ARNs they name."""

import pytest

from api_services.errors import ConfigurationError
from api_services.settings import LangfuseSettings, MongoSettings, load

ARN = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:sophia-dev-mongo-uri"


def refuse(arn: str) -> str:
    raise AssertionError(f"nothing may read {arn}")


def test_a_secret_is_read_from_the_arn_that_the_environment_names() -> None:
    asked: list[str] = []

    def read_secret(arn: str) -> str:
        asked.append(arn)
        return "mongodb://db.example/"

    settings = load(MongoSettings, {"MONGO_URI_SECRET_ARN": ARN, "MONGO_DATABASE": "interviews"}, read_secret)
    assert (settings.mongo_uri.get_secret_value(), settings.mongo_database) == ("mongodb://db.example/", "interviews")
    assert asked == [ARN]


def test_a_value_in_the_environment_spares_the_call_for_the_secret() -> None:
    environ = {"MONGO_URI": "mongodb://127.0.0.1/", "MONGO_URI_SECRET_ARN": ARN}
    assert load(MongoSettings, environ, refuse).mongo_uri.get_secret_value() == "mongodb://127.0.0.1/"


def test_a_missing_variable_is_named_with_the_remedy() -> None:
    with pytest.raises(ConfigurationError, match=r"MONGO_URI: Field required.*_SECRET_ARN"):
        load(MongoSettings, {}, refuse)


def test_an_error_never_shows_the_value_at_fault() -> None:
    with pytest.raises(ConfigurationError) as caught:
        load(MongoSettings, {"MONGO_URI": "mongodb://u:hunter2@h/", "MONGO_DATABASE": "hunter2" * 400}, refuse)
    assert "hunter2" not in str(caught.value)
    assert "hunter2" not in repr(caught.value.__cause__)


def test_langfuse_keys_without_a_base_url_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="LANGFUSE_BASE_URL"):
        load(LangfuseSettings, {"LANGFUSE_PUBLIC_KEY": "pk-lf-1", "LANGFUSE_SECRET_KEY": "sk-lf-1"}, refuse)


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"LANGFUSE_BASE_URL": "https://us.example"}, "https://us.example"),
        ({"LANGFUSE_HOST": "https://eu.example"}, "https://eu.example"),
        ({"LANGFUSE_BASE_URL": "https://us.example", "LANGFUSE_HOST": "https://eu.example"}, "https://us.example"),
        ({"LANGFUSE_BASE_URL": "", "LANGFUSE_HOST": "https://eu.example"}, "https://eu.example"),
        ({}, None),
    ],
)
def test_the_base_url_comes_before_the_host(environ: dict[str, str], expected: str | None) -> None:
    assert load(LangfuseSettings, environ, refuse).base_url == expected
