"""The AWS emulator as one process on a free loopback port."""

import http.client
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from api_services.errors import ConfigurationError
from toolchain import processes

REGION = "eu-west-1"

CREDENTIALS: Mapping[str, str] = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_REGION": REGION,
    "AWS_DEFAULT_REGION": REGION,
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
}
"""Dummy keys and no profile; with `AWS_ENDPOINT_URL` they are all an AWS client needs to speak with the emulator."""

_HEALTH_PATH = "/_ministack/health"
_START_TIMEOUT_SECONDS = 60.0
_PORT_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class Emulator:
    """A running emulator; `stop()` ends it and the function processes it started."""

    endpoint_url: str
    port: int
    process: subprocess.Popen[bytes]

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def environ(self) -> dict[str, str]:
        """What an AWS client needs in its environment to speak with this emulator only."""
        return client_environ(self.endpoint_url)

    def stop(self) -> None:
        processes.stop_child(self.process, grace_seconds=5.0)


def client_environ(endpoint_url: str) -> dict[str, str]:
    """Environment of an AWS client of the emulator at `endpoint_url`."""
    return {**CREDENTIALS, "AWS_ENDPOINT_URL": endpoint_url}


def start_emulator(work_dir: Path, log_path: Path, *, dies_with_parent: bool = False) -> Emulator:
    """Start the emulator on a free port and wait until it answers. Its files go below `work_dir`.

    Raises `ConfigurationError` with the end of its log when it does not come up.
    """
    work_dir.mkdir(parents=True, exist_ok=True)
    for attempt in range(1, _PORT_ATTEMPTS + 1):
        port = processes.free_port()
        process = processes.start(
            emulator_command(),
            log_path=log_path,
            environ={**_without_aws(os.environ), **emulator_settings(work_dir, port)},
            cwd=work_dir,
            dies_with_parent=dies_with_parent,
        )
        emulator = Emulator(f"http://{processes.LOOPBACK}:{port}", port, process)
        try:
            await_emulator(emulator, log_path)
        except ConfigurationError:
            emulator.stop()
            if attempt == _PORT_ATTEMPTS or "in use" not in processes.log_tail(log_path):
                raise
        except BaseException:
            emulator.stop()
            raise
        else:
            return emulator
    raise AssertionError("unreachable: the last attempt returns or raises")


def await_emulator(emulator: Emulator, log_path: Path) -> None:
    """Wait until the emulator answers."""
    processes.wait_until_ready(
        "the AWS emulator",
        emulator.process,
        lambda: answers(emulator.port),
        log_path=log_path,
        timeout_seconds=_START_TIMEOUT_SECONDS,
    )


def answers(port: int) -> bool:
    """Whether an emulator on that loopback port reports itself healthy."""
    connection = http.client.HTTPConnection(processes.LOOPBACK, port, timeout=5)
    try:
        connection.request("GET", _HEALTH_PATH)
        return connection.getresponse().status == http.HTTPStatus.OK
    except OSError:
        return False
    finally:
        connection.close()


def emulator_command() -> list[str]:
    """Command line of the emulator; everything else is in its environment."""
    return [sys.executable, "-m", "ministack"]


def emulator_settings(work_dir: Path, port: int) -> dict[str, str]:
    """What an emulator on the loopback `port` reads from its environment; the functions it runs inherit that."""
    return {
        **client_environ(f"http://{processes.LOOPBACK}:{port}"),
        "GATEWAY_PORT": str(port),
        "BIND_HOST": processes.LOOPBACK,
        "MINISTACK_HOST": processes.LOOPBACK,
        "MINISTACK_REGION": REGION,
        # Listeners of services that no stage uses; their fixed ports may be someone else's.
        "IOT_MTLS_ENABLED": "0",
        "SFTP_ENABLED": "0",
        "TMPDIR": str(work_dir),
        # The container engine of the host must not be used.
        "DOCKER_HOST": f"unix://{work_dir}/no-docker.sock",
        "LAMBDA_EXECUTOR": "local",
        "PYTHONUNBUFFERED": "1",
    }


def _without_aws(environ: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environ.items() if not name.startswith(("AWS_", "PYTHONPATH"))}
