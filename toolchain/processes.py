"""Child processes on loopback ports: start, wait until they answer, find again, stop with all their children."""

import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from api_services.errors import ConfigurationError

LOOPBACK = "127.0.0.1"
MARKER = "SOPHIA_STAGE"
"""Environment variable that every process of a stage and its children carry; its value is the stage's state folder."""

_POLL_SECONDS = 0.02
_PR_SET_PDEATHSIG = 1
_LOG_TAIL_LINES = 15


@dataclass(frozen=True, slots=True)
class ProcessId:
    """A process told apart from a later one that got the same number."""

    pid: int
    started: str


def free_port(*, besides: frozenset[int] = frozenset()) -> int:
    """A loopback TCP port nobody listens on now, none of `besides`."""
    while True:
        with socket.socket() as probe:
            probe.bind((LOOPBACK, 0))
            port: int = probe.getsockname()[1]
        if port not in besides:
            return port


def port_is_free(port: int) -> bool:
    """Whether a server could listen on the loopback port now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def start(
    command: Sequence[str],
    *,
    log_path: Path,
    environ: Mapping[str, str],
    cwd: Path | None = None,
    dies_with_parent: bool = False,
) -> subprocess.Popen[bytes]:
    """Start `command` as the leader of its own session, output appended to `log_path`.

    With `dies_with_parent` the kernel ends it when the starting thread ends (Linux): start it from a thread that stays.
    """
    log_path.parent.mkdir(parents=True, exist_ok=True)
    parent = os.getpid()
    libc = ctypes.CDLL(None, use_errno=True) if dies_with_parent and sys.platform == "linux" else None

    def bind_to_parent() -> None:
        if libc is not None:
            libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
            if os.getppid() != parent:  # the parent ended before the call above
                os._exit(1)

    with log_path.open("ab") as log:
        return subprocess.Popen(  # noqa: S603
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=dict(environ),
            cwd=cwd,
            start_new_session=True,
            preexec_fn=bind_to_parent if libc is not None else None,
        )


def wait_until_ready(
    name: str,
    process: subprocess.Popen[bytes],
    is_ready: Callable[[], bool],
    *,
    log_path: Path,
    timeout_seconds: float,
) -> None:
    """Poll until `is_ready`; `ConfigurationError` with the end of the log when the process ends or time is up."""
    deadline = time.monotonic() + timeout_seconds
    while not is_ready():
        fault = None
        if process.poll() is not None:
            fault = f"ended with exit code {process.returncode} while starting"
        elif time.monotonic() > deadline:
            fault = f"did not answer within {timeout_seconds:g} s"
        if fault is not None:
            message = f"{name} {fault}; its log {log_path} says: {log_tail(log_path)}"
            raise ConfigurationError(message, code="process_failed")
        time.sleep(_POLL_SECONDS)


def log_tail(log_path: Path, lines: int = _LOG_TAIL_LINES) -> str:
    """The last lines of a log on one line, for an error message."""
    if not log_path.exists():
        return "(no log)"
    tail = log_path.read_text(errors="replace").splitlines()[-lines:]
    return " | ".join(line.strip()[:300] for line in tail if line.strip()) or "(empty)"


def identify(pid: int) -> ProcessId | None:
    """The running process with that number; None when there is none or only its exit status is left."""
    started = _started(pid)
    return None if started is None else ProcessId(pid, started)


def is_running(process: ProcessId) -> bool:
    """Whether that very process, not another with its number, still runs."""
    return identify(process.pid) == process


def _started(pid: int) -> str | None:
    if sys.platform == "linux":
        try:
            # The command's name is in parentheses and may hold any character, so split behind the last one.
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            return None
        return None if fields[0] in {"Z", "X"} else fields[19]
    shown = subprocess.run(  # noqa: S603
        [_ps(), "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    ).stdout.split(maxsplit=1)
    return None if len(shown) < 2 or shown[0].startswith("Z") else shown[1].strip()


def marked_with(state_dir: Path) -> list[ProcessId]:
    """Every running process whose environment carries the stage's marker, this one left out."""
    wanted = f"{MARKER}={state_dir}"
    found: list[ProcessId] = []
    if sys.platform == "linux":
        pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
        environments = ((pid, _environment(pid)) for pid in pids)
    else:
        shown = subprocess.run(  # noqa: S603
            [_ps(), "-axEww", "-o", "pid=,command="], capture_output=True, text=True, check=False
        ).stdout
        rows = (line.split() for line in shown.splitlines())
        environments = ((int(row[0]), frozenset(row[1:])) for row in rows if row)
    for pid, environment in environments:
        if wanted in environment and pid != os.getpid():
            process = identify(pid)
            if process is not None:
                found.append(process)
    return found


def _environment(pid: int) -> frozenset[str]:
    try:
        content = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:  # ended meanwhile, or another user's
        return frozenset()
    return frozenset(content.decode(errors="replace").split("\0"))


def _ps() -> str:
    found = shutil.which("ps")
    if found is None:
        raise ConfigurationError("'ps' is not on PATH; it is needed to tell the stage's processes from others.")
    return found


def stop(processes: Sequence[ProcessId], *, grace_seconds: float = 10.0) -> None:
    """End exactly these processes: SIGTERM, after `grace_seconds` SIGKILL; returns when none runs."""
    _send(processes, signal.SIGTERM)
    if not _all_end(processes, grace_seconds):
        _send(processes, signal.SIGKILL)
        _all_end(processes, grace_seconds)


def stop_child(process: subprocess.Popen[bytes], *, grace_seconds: float = 10.0, at_once: bool = False) -> None:
    """End a child and its session's processes; with `at_once` by SIGKILL, for those whose data nobody needs."""
    group = process.pid
    if process.returncode is not None:
        return  # collected before: its number may be another's by now
    _signal_group(group, signal.SIGKILL if at_once else signal.SIGTERM)
    deadline = time.monotonic() + grace_seconds
    # Not collected while its group is signalled: until then nobody else can have its number.
    while not _has_ended(group) and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
    _signal_group(group, signal.SIGKILL)
    process.wait()


def _has_ended(child: int) -> bool:
    return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _signal_group(group: int, number: signal.Signals) -> None:
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return


def _send(processes: Sequence[ProcessId], number: signal.Signals) -> None:
    for process in processes:
        if is_running(process):
            try:
                os.kill(process.pid, number)
            except ProcessLookupError:
                continue


def _all_end(processes: Sequence[ProcessId], timeout_seconds: float) -> bool:
    deadline = time.monotonic() + timeout_seconds
    while any(is_running(process) for process in processes):
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_SECONDS)
    return True
