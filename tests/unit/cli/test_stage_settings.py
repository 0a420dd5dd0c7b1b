from pathlib import Path
from typing import Any

import pytest

from api_services.documents.settings import IndexSettings
from api_services.errors import ConfigurationError, DependencyError
from api_services.settings import MongoSettings
from cli import stage_settings
from cli.stage_settings import stage_settings as settings_of


class NoSecretError(Exception):
    pass


class FakeSecrets:
    """Secrets Manager, as far as it is asked."""

    class exceptions:  # noqa: N801  (botocore's name)
        ResourceNotFoundException = NoSecretError

    def __init__(self, values: dict[str, str]) -> None:
        self.values = values
        self.asked: list[str] = []

    def get_secret_value(self, *, SecretId: str) -> dict[str, str]:  # noqa: N803
        self.asked.append(SecretId)
        if SecretId not in self.values:
            raise NoSecretError
        return {"SecretString": self.values[SecretId]}


class FakeAccess:
    def __init__(self, stage: str, secrets: dict[str, str]) -> None:
        self.stage = stage
        self.secretsmanager: Any = FakeSecrets(secrets)


@pytest.fixture
def configured(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    values: dict[str, Any] = {}

    def configuration(_stage: str) -> dict[str, Any]:
        return values

    monkeypatch.setattr(stage_settings, "_configured", configuration)
    return values


def load(access: FakeAccess, model: type[Any]) -> Any:
    return settings_of(access, model)  # pyright: ignore[reportArgumentType]


def test_the_stage_s_own_index_and_token_are_read(configured: dict[str, Any]) -> None:
    configured |= {"sophia:indexUrl": "libsql://x.example.com", "aws:region": "eu-west-1"}
    access = FakeAccess("dev", {"sophia/dev/turso-auth-token": "t"})
    settings = load(access, IndexSettings)
    assert settings.index_url == "libsql://x.example.com"
    assert settings.turso_auth_token.get_secret_value() == "t"


def test_a_file_needs_no_token_and_none_is_asked_for(configured: dict[str, Any]) -> None:
    configured |= {"sophia:indexUrl": f"file:{Path('/data/index.db')}"}
    access = FakeAccess("local", {})
    assert load(access, IndexSettings).turso_auth_token is None
    assert access.secretsmanager.asked == []


def test_a_secret_without_a_value_is_named_with_the_remedy(configured: dict[str, Any]) -> None:
    with pytest.raises(DependencyError, match=r"sophia/dev/mongo-uri has no value; set it with"):
        load(FakeAccess("dev", {}), MongoSettings)


def test_a_wrong_value_is_named(configured: dict[str, Any]) -> None:
    configured |= {"sophia:embeddingModel": "x" * 3_000}
    with pytest.raises(ConfigurationError, match="EMBEDDING_MODEL"):
        load(FakeAccess("local", {}), IndexSettings)
