"""Run-time settings: small models composed per process, read once at its edge.

A field `mongo_uri` is read from `MONGO_URI`; a secret one from the secret whose ARN is in `MONGO_URI_SECRET_ARN`, so
that no deployed environment holds a secret. pydantic-settings would do the first half and costs a quarter of a
second of every cold start.
"""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, model_validator

from api_services.errors import ConfigurationError

Text = Annotated[str, Field(min_length=1, max_length=2048)]


class Settings(BaseModel):
    """Base of every settings model: immutable, no unknown field."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True, defer_build=True)


class MongoSettings(Settings):
    mongo_uri: SecretStr
    mongo_database: Text = "sophia"


class EmbeddingSettings(Settings):
    openai_api_key: SecretStr
    openai_base_url: Text | None = None
    embedding_model: Text = "text-embedding-3-small"


class OpenAISettings(EmbeddingSettings):
    report_model: Text = "gpt-5-mini"
    enrichment_model: Text = "gpt-5-nano"


class LangfuseSettings(Settings):
    """Tracing is on when a public key is set; keys without a base URL would silently reach a default region."""

    langfuse_public_key: Text | None = None
    langfuse_secret_key: SecretStr | None = None
    langfuse_base_url: Text | None = None
    langfuse_host: Text | None = None

    @property
    def base_url(self) -> str | None:
        """`LANGFUSE_BASE_URL`, else `LANGFUSE_HOST`."""
        return self.langfuse_base_url or self.langfuse_host

    @model_validator(mode="after")
    def _keys_need_a_base_url(self) -> "LangfuseSettings":
        if self.langfuse_public_key is not None and self.base_url is None:
            raise ValueError("Langfuse keys need LANGFUSE_BASE_URL; without it traces go to another region unseen")
        return self


S = TypeVar("S", bound=Settings)


def load(model: type[S], environ: Mapping[str, str], read_secret: Callable[[str], str]) -> S:
    """Build `model` from `environ`; `read_secret(arn)` is called only for ARNs the environment names.

    Raises `ConfigurationError` that names each variable at fault and never its value.
    """
    values: dict[str, Any] = {}
    for field in model.model_fields:
        key = field.upper()
        if environ.get(key):
            values[field] = environ[key]
        elif environ.get(f"{key}_SECRET_ARN"):
            values[field] = read_secret(environ[f"{key}_SECRET_ARN"])
    try:
        return model.model_validate(values)
    except ValidationError as exc:
        faults = "; ".join(
            f"{'.'.join(str(part) for part in fault['loc']).upper() or model.__name__}: {fault['msg']}"
            for fault in exc.errors(include_input=False, include_url=False)
        )
        raise ConfigurationError(f"{faults}. Set the variable, or its _SECRET_ARN for a secret.") from None
