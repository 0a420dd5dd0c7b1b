"""Settings as a stage's own functions read them, for commands that speak with its database, index or model."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from api_services import settings
from api_services.errors import DependencyError
from api_services.secrets import SECRETS, TURSO_AUTH_TOKEN
from cli.stage_access import LOCAL
from toolchain.stage_files import setting_of

if TYPE_CHECKING:
    from cli.stage_access import StageAccess

S = TypeVar("S", bound=settings.Settings)


def stage_settings(access: "StageAccess", model: type[S]) -> S:
    """`model` from the stage's configuration file and its secrets.

    Raises `ConfigurationError` for a value that is missing or wrong, `DependencyError` for a secret without a value.
    """

    def read_secret(name: str) -> str:
        client = access.secretsmanager
        try:
            return client.get_secret_value(SecretId=name)["SecretString"]
        except client.exceptions.ResourceNotFoundException as exc:
            raise DependencyError(
                f"{name} has no value; set it with `./sophia secrets set`", code="secret_without_value"
            ) from exc

    return settings.load(model, _environ(access.stage, _configured(access.stage)), read_secret)


def _environ(stage: str, configured: Mapping[str, Any]) -> dict[str, str]:
    environ = {
        setting.upper(): str(value)
        for key, value in configured.items()
        if (setting := setting_of(key)) is not None and isinstance(value, str | int | float)
    }
    environ.update({spec.env_key: spec.physical_name(stage) for spec in SECRETS})
    if environ.get("INDEX_URL", "file:").startswith("file:"):
        del environ[TURSO_AUTH_TOKEN.env_key]
    return environ


def _configured(stage: str) -> Mapping[str, Any]:
    from local.stage import LocalStage
    from toolchain.paths import ROOT
    from toolchain.stage_files import read_stage_file

    path = LocalStage().paths.config_file if stage == LOCAL else ROOT / f"Pulumi.{stage}.yaml"
    return read_stage_file(path).get("config") or {}
