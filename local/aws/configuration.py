"""Where the plugin may send calls: to an emulator on this machine, or nowhere at all."""

import http.client
import ipaddress
import json
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from local.aws.values import UNKNOWN, Props, as_list, as_object

OFFLINE_VARIABLE: Final = "SOPHIA_AWS_OFFLINE"
ENDPOINT_VARIABLE: Final = "AWS_ENDPOINT_URL"
DEFAULT_REGION: Final = "eu-west-1"

_ANSWER_TIMEOUT_SECONDS = 5.0


class ConfigurationRefusedError(Exception):
    """The plugin must not start like this; one sentence with the remedy."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """What the stack and the process that runs the engine state."""

    region: str = DEFAULT_REGION
    offline: bool = False
    endpoint: str | None = None
    endpoints: Mapping[str, str] = field(default_factory=dict[str, str])
    default_tags: Mapping[str, str] = field(default_factory=dict[str, str])

    def endpoint_of(self, service: str) -> str:
        """The URL for one AWS service; `ConfigurationRefusedError` when none is configured."""
        url = self.endpoints.get(_ENDPOINT_NAMES.get(service, service)) or self.endpoint
        if url is None:
            raise ConfigurationRefusedError(
                f"no endpoint is configured for the AWS service '{service}'; "
                f"set {ENDPOINT_VARIABLE} to the emulator's URL"
            )
        return url


_ENDPOINT_NAMES: Final = {"logs": "cloudwatchlogs"}
"""botocore's name of a service where the provider's configuration has another one."""


def read_configuration(arguments: Props, environment: Mapping[str, str]) -> Configuration:
    """The configuration, with every endpoint on loopback; `ConfigurationRefusedError` otherwise.

    The environment's endpoint wins over the stack's: the process that starts the engine knows where the emulator is.
    """
    plain = {key: _decoded(value) for key, value in arguments.items()}
    region = plain.get("region")
    if region in (None, UNKNOWN):
        region = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION") or DEFAULT_REGION
    offline = environment.get(OFFLINE_VARIABLE, "").lower() in ("1", "true")
    tags = as_object((as_object(plain.get("defaultTags")) or {}).get("tags")) or {}
    if offline:
        return Configuration(region=str(region), offline=True, default_tags=tags)
    endpoint = environment.get(ENDPOINT_VARIABLE) or None
    endpoints: dict[str, str] = {}
    for entry in as_list(plain.get("endpoints")):
        endpoints.update({name: url for name, url in (as_object(entry) or {}).items() if url})
    for name, url in {ENDPOINT_VARIABLE: endpoint, **endpoints}.items():
        if url is not None and not is_loopback(url):
            raise ConfigurationRefusedError(
                f"the aws plugin of the local stage speaks with an emulator on this machine only, "
                f"and {name} is {url!r}; run `./sophia up`, or preview another stage with --offline"
            )
    if endpoint is not None:
        endpoints = {}
    if endpoint is None and not endpoints:
        raise ConfigurationRefusedError(
            f"the aws plugin of the local stage has no endpoint; set {ENDPOINT_VARIABLE} to the emulator's URL "
            f"(`./sophia up` does), or preview with --offline"
        )
    return Configuration(str(region), endpoint=endpoint, endpoints=endpoints, default_tags=tags)


def is_loopback(url: str) -> bool:
    """Whether the URL names this machine by `localhost` or a loopback address; other names could resolve anywhere."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        _ = parts.port
    except ValueError:
        return False
    if parts.scheme not in ("http", "https"):
        return False
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def require_answer(configuration: Configuration) -> None:
    """Refuse when nothing answers at an endpoint, so that the first resource does not fail in a riddle.

    An offline configuration has no endpoint and asks nobody.
    """
    for url in sorted({*configuration.endpoints.values(), *filter(None, [configuration.endpoint])}):
        parts = urlsplit(url)
        connect = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        connection = connect(parts.hostname or "", parts.port, timeout=_ANSWER_TIMEOUT_SECONDS)
        try:
            connection.request("GET", "/")
            connection.getresponse().read()
        except (OSError, http.client.HTTPException) as error:
            raise ConfigurationRefusedError(
                f"emulator not reachable at {url} ({error}); start it with `./sophia up`"
            ) from error
        finally:
            connection.close()


def forget_credentials(environment: MutableMapping[str, str]) -> None:
    """Take the user's AWS keys, profiles and settings out of the process's environment."""
    for name in [name for name in environment if name.startswith("AWS_")]:
        del environment[name]
    environment["AWS_EC2_METADATA_DISABLED"] = "true"
    environment["AWS_CONFIG_FILE"] = environment["AWS_SHARED_CREDENTIALS_FILE"] = "/dev/null"


def _decoded(value: Any) -> Any:
    """Nested provider settings arrive as JSON text."""
    if not isinstance(value, str) or value[:1] not in ("[", "{"):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value
