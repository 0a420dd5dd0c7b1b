"""Values of the stage's secrets: written here, never read back, never shown."""

import hashlib
import json
import re
import secrets as random_secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from api_services.errors import InvalidInputError, NotFoundError
from api_services.secrets import API_KEYS, MONGO_URI, SECRETS, SecretSpec

if TYPE_CHECKING:
    from types_boto3_secretsmanager import SecretsManagerClient

Role = Literal["bot", "portal", "admin"]
ROLES: Final[tuple[Role, ...]] = get_args(Role)

MAX_BYTES: Final = 65_536
"""Of one secret value (Secrets Manager guide, reference_limits)."""

_DIGEST: Final = re.compile(r"^[0-9a-f]{64}$")


@dataclass(frozen=True, slots=True)
class SecretState:
    """Whether a secret exists and has a value; never the value."""

    name: str
    description: str
    exists: bool
    has_value: bool
    changed_at: datetime | None


def spec_named(name: str) -> SecretSpec:
    """The declared secret of that name; `InvalidInputError` with the known names otherwise."""
    for spec in SECRETS:
        if spec.name == name:
            return spec
    known = ", ".join(spec.name for spec in SECRETS)
    raise InvalidInputError(f"no secret '{name}'; there are {known}", code="unknown_secret")


def states(client: "SecretsManagerClient", stage: str) -> list[SecretState]:
    """Every declared secret as the stage has it."""
    return [_state(client, spec, stage) for spec in SECRETS]


def _state(client: "SecretsManagerClient", spec: SecretSpec, stage: str) -> SecretState:
    try:
        described = client.describe_secret(SecretId=spec.physical_name(stage))
    except client.exceptions.ResourceNotFoundException:
        return SecretState(spec.name, spec.description, exists=False, has_value=False, changed_at=None)
    return SecretState(
        spec.name,
        spec.description,
        exists=True,
        has_value=bool(described.get("VersionIdsToStages")),
        changed_at=described.get("LastChangedDate"),
    )


def set_value(client: "SecretsManagerClient", spec: SecretSpec, stage: str, value: str) -> None:
    """Write a value after checking its form; errors never repeat it."""
    if not value:
        raise InvalidInputError(f"{spec.name}: the value is empty", code="secret_empty")
    if len(value.encode()) > MAX_BYTES:
        raise InvalidInputError(f"{spec.name}: a value has at most {MAX_BYTES} bytes", code="secret_too_large")
    check = _CHECKS.get(spec.name)
    fault = check(value) if check is not None else None
    if fault is not None:
        raise InvalidInputError(f"{spec.name}: {fault}", code="secret_malformed")
    _put(client, spec, stage, value)


def add_api_key(client: "SecretsManagerClient", stage: str, role: Role) -> str:
    """Make a bearer key for `role`, store its digest beside the others, and answer the key: it is shown this once."""
    try:
        stored = client.get_secret_value(SecretId=API_KEYS.physical_name(stage))["SecretString"]
    except client.exceptions.ResourceNotFoundException:
        stored = "{}"
    if _api_keys_fault(stored) is not None:
        raise InvalidInputError(
            f"{API_KEYS.name} holds something else than digests by role; set it anew", code="secret_malformed"
        )
    digests: dict[str, list[str]] = json.loads(stored)
    key = f"sophia_{role}_{random_secrets.token_urlsafe(32)}"
    digests.setdefault(role, []).append(hashlib.sha256(key.encode()).hexdigest())
    _put(client, API_KEYS, stage, json.dumps(digests, sort_keys=True))
    return key


def _put(client: "SecretsManagerClient", spec: SecretSpec, stage: str, value: str) -> None:
    try:
        client.put_secret_value(SecretId=spec.physical_name(stage), SecretString=value)
    except client.exceptions.ResourceNotFoundException:
        raise NotFoundError(
            f"stage {stage} has no secret {spec.name}; run `./sophia pulumi up -s {stage}` first", code="not_deployed"
        ) from None


def _mongo_uri_fault(value: str) -> str | None:
    return None if value.startswith(("mongodb://", "mongodb+srv://")) else "it begins with mongodb:// or mongodb+srv://"


def _api_keys_fault(value: str) -> str | None:
    shape = f"a JSON object of {', '.join(ROLES)} to lists of SHA-256 hex digests is expected"
    try:
        digests: Any = json.loads(value)
    except ValueError:
        return shape
    if not isinstance(digests, Mapping):
        return shape
    for role, keys in digests.items():  # pyright: ignore[reportUnknownVariableType]
        if role not in ROLES or not isinstance(keys, list):
            return shape
        if not all(isinstance(key, str) and _DIGEST.fullmatch(key) for key in keys):  # pyright: ignore[reportUnknownVariableType]
            return shape
    return None


_CHECKS: Final[Mapping[str, Callable[[str], str | None]]] = {
    MONGO_URI.name: _mongo_uri_fault,
    API_KEYS.name: _api_keys_fault,
}
