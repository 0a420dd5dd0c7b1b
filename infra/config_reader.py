"""Reads Pulumi configuration values by key and says, for each fault, the key, the rule and the YAML that mends it."""

import json
import re
from collections.abc import Container, Mapping, Sequence
from typing import Any, cast

import pulumi

PROJECT = "sophia"


class ConfigError(pulumi.RunError):
    """The stage is configured wrongly; the message names the remedy. Pulumi prints it without traceback."""


class Reader:
    """The `config:` section of one stage. Keys without a namespace are the project's own."""

    def __init__(self, stage: str, values: Mapping[str, str]) -> None:
        self._stage = stage
        self._values = values
        self._asked: set[str] = set()

    def error(self, key: str, fault: str, example: Any) -> ConfigError:
        """The error for `key`: what is wrong and the YAML to add."""
        full = self._full(key)
        shown = json.dumps(example) if isinstance(example, list) else _yaml_scalar(example)
        return ConfigError(f"{full} {fault}. Set it in Pulumi.{self._stage}.yaml:\n\nconfig:\n  {full}: {shown}")

    def optional_text(self, key: str, pattern: str, rule: str, *, example: str | None = None) -> str | None:
        """The value, or None where it isn't set."""
        value = self._get(key)
        if value is None:
            return None
        if not re.fullmatch(pattern, value):
            raise self.error(key, f"must be {rule}, got '{value}'", example or f"<{rule}>")
        return value

    def text(self, key: str, pattern: str, rule: str, *, default: str | None = None, example: str | None = None) -> str:
        """The value, else `default`; without a default it must be set."""
        value = self.optional_text(key, pattern, rule, example=example or default)
        if value is None:
            value = default
        if value is None:
            raise self.error(key, f"is missing; it must be {rule}", example or f"<{rule}>")
        return value

    def choice(self, key: str, allowed: Sequence[str], *, default: str) -> str:
        """One of `allowed`."""
        value = self._get(key)
        if value is None:
            return default
        if value not in allowed:
            raise self.error(key, f"must be one of {', '.join(allowed)}, got '{value}'", default)
        return value

    def integer(
        self, key: str, *, allowed: Container[int], default: int | None = None, example: int | None = None
    ) -> int:
        """A whole number out of `allowed`."""
        value = self._get(key)
        shown = _range(allowed)
        suggested = default if default is not None else example
        if value is None:
            if default is None:
                raise self.error(key, f"is missing; it must be {shown}", suggested)
            return default
        if not re.fullmatch(r"-?\d{1,18}", value) or int(value) not in allowed:
            raise self.error(key, f"must be {shown}, got '{value}'", suggested)
        return int(value)

    def flag(self, key: str, *, default: bool) -> bool:
        """True or false."""
        value = self._get(key)
        if value is None:
            return default
        if value not in ("true", "false"):
            raise self.error(key, f"must be true or false, got '{value}'", default)
        return value == "true"

    def texts(self, key: str, pattern: str, rule: str, *, example: str) -> tuple[str, ...]:
        """A list of texts, each different; empty where it isn't set."""
        value = self._get(key)
        if value is None:
            return ()
        try:
            parsed: Any = json.loads(value)
        except ValueError:
            parsed = None
        if not isinstance(parsed, list) or not all(isinstance(item, str) for item in cast("list[Any]", parsed)):
            raise self.error(key, f"must be a list of {rule}", [example])
        items = cast("list[str]", parsed)
        for item in items:
            if not re.fullmatch(pattern, item, re.IGNORECASE):
                raise self.error(key, f"must be a list of {rule}, got '{item}'", [example])
        if len(set(items)) != len(items):
            raise self.error(key, "names something twice", [example])
        return tuple(items)

    def refuse_unknown(self) -> None:
        """Refuse keys of the project that nothing asked for: a misspelt key would be ignored without a word."""
        own = {key for key in self._values if key.startswith(f"{PROJECT}:")}
        for key in sorted(own - self._asked):
            known = ", ".join(sorted(name for name in self._asked if name.startswith(f"{PROJECT}:")))
            raise ConfigError(
                f"{key} in Pulumi.{self._stage}.yaml is not a setting of this project; there are {known}. "
                "Remove it or mend its name."
            )

    def _full(self, key: str) -> str:
        return key if ":" in key else f"{PROJECT}:{key}"

    def _get(self, key: str) -> str | None:
        full = self._full(key)
        self._asked.add(full)
        value = self._values.get(full)
        return value if value else None


def _range(allowed: Container[int]) -> str:
    if isinstance(allowed, range):
        step = f" in steps of {allowed.step}" if allowed.step > 1 else ""
        return f"a whole number from {allowed.start} to {allowed[-1]}{step}"
    return f"one of {', '.join(str(number) for number in cast('tuple[int, ...]', allowed))}"


def _yaml_scalar(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def as_values(config: Mapping[str, Any]) -> dict[str, str]:
    """Pulumi's own form of a `config:` section: every value a string, lists and objects as JSON."""
    return {key: value if isinstance(value, str) else json.dumps(value) for key, value in config.items()}
