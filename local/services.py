"""The processes of the local stage beside mongod and the emulator, and how each says that it is ready."""

import hashlib
import http.client
import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from api_services.errors import ConfigurationError
from api_services.queues import API as API_PRODUCER
from api_services.queues import queues_sent_by
from api_services.secrets import SECRETS
from local.emulator import client_environ
from toolchain import processes
from toolchain.paths import ROOT
from toolchain.stage_files import config_key

MONGOD: Final = "mongod"
EMULATOR: Final = "emulator"
LLM: Final = "llm"
API: Final = "api"
SERVICES: Final = (MONGOD, EMULATOR, LLM, API)
"""In the order they are needed."""

START_TIMEOUT_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class HttpService:
    """A Python module of ours that serves HTTP and answers `/healthz` when it is ready."""

    name: str
    module: str
    source: Path

    def command(self, port: int) -> list[str]:
        return [sys.executable, "-m", self.module, "--port", str(port)]


LLM_SERVICE: Final = HttpService(LLM, "local.llm", ROOT / "local" / "llm")
API_SERVICE: Final = HttpService(API, "api_services.http", ROOT / "api_services")


def answers(port: int, path: str = "/healthz") -> bool:
    """Whether an HTTP server on that loopback port answers 200."""
    connection = http.client.HTTPConnection(processes.LOOPBACK, port, timeout=5)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def fingerprint(command: Iterable[str], environ: Mapping[str, str], source: Path | None = None) -> str:
    """Hash of what a process is started with; another one means that it must be started again."""
    digest = hashlib.sha256(json.dumps([list(command), sorted(environ.items())]).encode())
    files = source.rglob("*") if source is not None else ()
    for path in sorted(file for file in files if file.is_file() and "__pycache__" not in file.parts):
        digest.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def choose_port(name: str, environ: Mapping[str, str], recorded: int | None, taken: Iterable[int]) -> int:
    """The configured port, else the last one, else a free one; `ConfigurationError` for a configured one in use."""
    key = f"SOPHIA_{name.upper()}_PORT"
    stated = environ.get(key)
    if stated:
        if not stated.isdigit() or not 0 < int(stated) < 65536:
            raise ConfigurationError(f"{key} is '{stated}'; set it to a port from 1 to 65535.", code="port_invalid")
        if not processes.port_is_free(int(stated)):
            raise ConfigurationError(
                f"port {stated} of {key} is taken by another program; choose another, or unset it for a free one.",
                code="port_taken",
            )
        return int(stated)
    if recorded is not None and recorded not in taken and processes.port_is_free(recorded):
        return recorded
    return processes.free_port(besides=frozenset(taken))


def api_environ(
    endpoint_url: str, config: Mapping[str, object], outputs: Mapping[str, str], secret_arns: Mapping[str, str]
) -> dict[str, str]:
    """What the API reads, as the Fargate task would get it: queue URLs, secrets' ARNs, settings, and the emulator."""
    from api_services.http.settings import ApiSettings

    environ = client_environ(endpoint_url)
    for spec in queues_sent_by(API_PRODUCER):
        environ[spec.url_env_key] = outputs[spec.output]
    for secret in SECRETS:
        if secret.setting in ApiSettings.model_fields and secret.name in secret_arns:
            environ[secret.env_key] = secret_arns[secret.name]
    for field in ApiSettings.model_fields:
        value = config.get(config_key(field))
        if value is not None:
            environ[field.upper()] = str(value)
    return environ
