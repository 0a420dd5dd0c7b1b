"""The `Pulumi.<stage>.yaml` files: which stages there are, what a file holds, and how a key names a setting."""

import re
from pathlib import Path
from typing import Any, Final, cast

import yaml

from api_services.errors import ConfigurationError

CONFIG_PREFIX: Final = "sophia:"

_CAPITAL: Final = re.compile(r"(?<!^)(?=[A-Z])")


def config_name(setting: str) -> str:
    """A setting's name in the project's namespace of a stage's file: `index_url` is `indexUrl`."""
    first, *rest = setting.split("_")
    return first + "".join(word.capitalize() for word in rest)


def config_key(setting: str) -> str:
    """Key of a setting in a stage's file: `index_url` is `sophia:indexUrl`."""
    return CONFIG_PREFIX + config_name(setting)


def setting_of(key: str) -> str | None:
    """The setting that a key of a stage's file names; None for a key of another namespace."""
    if not key.startswith(CONFIG_PREFIX):
        return None
    return _CAPITAL.sub("_", key.removeprefix(CONFIG_PREFIX)).lower()


def stages(root: Path) -> list[str]:
    """The stages there are, by their configuration files."""
    return sorted(path.name.removeprefix("Pulumi.").removesuffix(".yaml") for path in root.glob("Pulumi.*.yaml"))


def check_stage(root: Path, stage: str) -> None:
    """`ConfigurationError` with the known names when there is no such stage."""
    known = stages(root)
    if stage not in known:
        raise ConfigurationError(
            f"no stage '{stage}'; there are {', '.join(known)}. A new one begins with a Pulumi.<stage>.yaml.",
            code="unknown_stage",
        )


def read_stage_file(path: Path) -> dict[str, Any]:
    """The content of a `Pulumi.<stage>.yaml`; `ConfigurationError` when it cannot be read or is not a mapping."""
    try:
        content: object = yaml.safe_load(path.read_text())
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as exc:
        reason = " ".join(str(exc).split())[:200]
        raise ConfigurationError(
            f"{path.name} cannot be read ({reason}); mend it or restore it from the repository.",
            code="config_unreadable",
        ) from exc
    if not isinstance(content, dict) or not isinstance(cast("dict[str, Any]", content).get("config", {}), dict):
        raise ConfigurationError(
            f"{path.name} must be a mapping with a 'config' section; mend it or restore it from the repository.",
            code="config_unreadable",
        )
    return cast("dict[str, Any]", content)
