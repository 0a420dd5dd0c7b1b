"""The secrets' values of the local stage: bearer keys made once, and all values put into the emulator."""

import hashlib
import json
import secrets
from collections.abc import Mapping
from typing import TYPE_CHECKING

from api_services.errors import ConfigurationError
from api_services.secrets import API_KEYS, SECRETS
from api_services.stages import LOCAL_STAGE
from local import clients
from local.run_state import write_private
from toolchain.paths import StagePaths

if TYPE_CHECKING:
    from types_boto3_secretsmanager import SecretsManagerClient

ROLES = ("bot", "portal", "admin")
_KEY_BYTES = 32


def bearer_keys(paths: StagePaths) -> dict[str, str]:
    """The API's keys by role; made when there are none. `ConfigurationError` when the file is damaged."""
    if not paths.keys_file.exists():
        made = {role: f"local-{role}-{secrets.token_urlsafe(_KEY_BYTES)}" for role in ROLES}
        write_private(paths.keys_file, json.dumps(made))
    try:
        keys = json.loads(paths.keys_file.read_text())
        return {role: str(keys[role]) for role in ROLES}
    except (OSError, ValueError, KeyError, TypeError) as exc:
        raise ConfigurationError(
            f"the bearer keys in {paths.keys_file} cannot be read; remove the file, and `./sophia up` makes new ones.",
            code="state_corrupt",
        ) from exc


def write_secret_values(paths: StagePaths, endpoint_url: str, values: Mapping[str, str]) -> dict[str, str]:
    """Give each secret the stack made its value, where it has another one; returns the ARNs by secret's name."""
    client = clients.secrets_manager(endpoint_url)
    digests = {role: [hashlib.sha256(key.encode()).hexdigest()] for role, key in bearer_keys(paths).items()}
    wanted = {**values, API_KEYS.name: json.dumps(digests, sort_keys=True)}
    arns: dict[str, str] = {}
    for spec in SECRETS:
        name = spec.physical_name(LOCAL_STAGE)
        try:
            arns[spec.name] = client.describe_secret(SecretId=name)["ARN"]
        except client.exceptions.ResourceNotFoundException:
            continue
        value = wanted.get(spec.name)
        if value is not None and _current(client, name) != value:
            client.put_secret_value(SecretId=name, SecretString=value)
    return arns


def _current(client: "SecretsManagerClient", name: str) -> str | None:
    try:
        return client.get_secret_value(SecretId=name).get("SecretString")
    except client.exceptions.ResourceNotFoundException:
        return None
