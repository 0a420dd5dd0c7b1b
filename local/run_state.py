"""What runs: processes, ports and outputs of the local stage, kept in `run.json` across commands and crashes."""

import fcntl
import os
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from api_services.errors import ConfigurationError
from toolchain.paths import StagePaths
from toolchain.processes import ProcessId


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ServiceRecord(_Model):
    """One started process; `fingerprint` tells what it was started with."""

    pid: int = Field(gt=1)
    started: str
    port: int = Field(gt=0, lt=65536)
    fingerprint: str

    @property
    def process(self) -> ProcessId:
        return ProcessId(self.pid, self.started)


class RunState(_Model):
    """The content of `run.json`."""

    version: Literal[1] = 1
    services: dict[str, ServiceRecord] = Field(default_factory=dict[str, ServiceRecord])
    ports: dict[str, int] = Field(default_factory=dict[str, int])
    deployed_to: ServiceRecord | None = None
    """The emulator that Pulumi's state describes; None while a deployment is under way or none was made."""
    outputs: dict[str, str] = Field(default_factory=dict[str, str])


def read_run_state(paths: StagePaths) -> RunState:
    """The recorded state, empty where nothing was recorded; `ConfigurationError` when the file is damaged."""
    try:
        return RunState.model_validate_json(paths.run_file.read_bytes())
    except FileNotFoundError:
        return RunState()
    except (OSError, ValidationError) as exc:
        reason = str(exc.strerror) if isinstance(exc, OSError) else exc.errors(include_input=False)[0]["msg"]
        raise ConfigurationError(
            f"the local stage's record {paths.run_file} cannot be read ({reason}); run `./sophia down`, which finds the"
            " stage's processes without it and keeps all data, then `./sophia up`.",
            code="state_corrupt",
        ) from exc


def write_run_state(paths: StagePaths, state: RunState) -> None:
    """Replace the record in one step, so that a kill leaves the old or the new one."""
    write_private(paths.run_file, state.model_dump_json(indent=1))


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner may read, in one step."""
    with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=f".{path.name}.", delete=False) as part:
        part.write(text)
        part.flush()
        os.fsync(part.fileno())
    Path(part.name).replace(path)


def open_state_dir(paths: StagePaths) -> None:
    """Make the state folder; `ConfigurationError` when it cannot be used."""
    try:
        paths.state_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        paths.log_dir.mkdir(exist_ok=True)
        with tempfile.TemporaryFile(dir=paths.state_dir):
            pass
    except OSError as exc:
        raise ConfigurationError(
            f"the state folder {paths.state_dir} cannot be used ({exc.strerror}); make it a writable folder.",
            code="state_unusable",
        ) from exc


@contextmanager
def exclusive(paths: StagePaths, say: Callable[[str], None]) -> Generator[None]:
    """Hold the stage's lock, waiting for another `up` or `down`; the kernel frees it however its holder ends."""
    open_state_dir(paths)
    with paths.lock_file.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another command is starting or stopping this stage; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
