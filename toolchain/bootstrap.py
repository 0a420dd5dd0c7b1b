"""Make `.venv` from the pinned requirements. Run by `./sophia` with whatever Python there is: standard library only.

Two at once are safe (a file lock), and so is a kill half-way: the stamp that marks the folder as current comes last.
"""

import fcntl
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

USER_ERROR = 2


class BootstrapError(Exception):
    """One sentence with its remedy."""


def main(root: Path, stamp: str) -> int:
    """Bring `.venv` up to `stamp`; exit code 2 with one sentence when that cannot be done."""
    state = root / ".sophia"
    try:
        state.mkdir(exist_ok=True)
        with (state / "venv.lock").open("w") as lock:
            _acquire(lock.fileno())
            if _current(root) != stamp:
                _make(root, stamp)
    except BootstrapError as error:
        sys.stderr.write(f"error (python_environment): {error}\n")
        return USER_ERROR
    except OSError as error:
        sys.stderr.write(f"error (python_environment): {error}; make {root} writable, with room for 1.5 GB.\n")
        return USER_ERROR
    except KeyboardInterrupt:
        return 130
    return 0


def _acquire(descriptor: int) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        _say("another process is making .venv; waiting for it")
        fcntl.flock(descriptor, fcntl.LOCK_EX)


def _current(root: Path) -> str | None:
    stamp = root / ".venv" / "sophia-stamp"
    return stamp.read_text().strip() if stamp.exists() and _works(root / ".venv") else None


def _works(venv: Path) -> bool:
    """Whether the folder's Python still starts; it does not when the one it was made with was removed."""
    python = venv / "bin" / "python"
    if not python.exists():
        return False
    check = "import sys; sys.exit(sys.version_info < (3, 11))"
    return subprocess.run([str(python), "-c", check], capture_output=True, check=False).returncode == 0  # noqa: S603


def _make(root: Path, stamp: str) -> None:
    started = time.monotonic()
    venv = root / ".venv"
    (venv / "sophia-stamp").unlink(missing_ok=True)
    _say("preparing .venv from the pinned requirements (a minute the first time)")
    pinned = re.search(r"^uv==(\S+)", (root / "requirements.txt").read_text(), re.MULTILINE)
    if pinned is None:
        raise BootstrapError("requirements.txt pins no uv; restore it from the repository")
    if not _works(venv):
        shutil.rmtree(venv, ignore_errors=True)
        _run(
            [sys.executable, "-m", "venv", str(venv)],
            f"{sys.executable} cannot make a virtual environment; install its venv and pip modules"
            " (Debian: apt install python3-venv)",
        )
    uv = _uv(venv, pinned[1])
    _run(
        [
            str(uv),
            "pip",
            "sync",
            "--quiet",
            # Where Python may write no bytecode, every start would compile Pulumi and boto3 anew.
            "--compile-bytecode",
            "--python",
            str(venv / "bin" / "python"),
            str(root / "requirements-dev.txt"),
        ],
        "the pinned requirements could not be installed; check that the package index is reachable, then run again",
    )
    (venv / "sophia-stamp").write_text(stamp + "\n")
    _say(f".venv is ready ({time.monotonic() - started:.0f} s)")


def _uv(venv: Path, version: str) -> Path:
    uv = venv / "bin" / "uv"
    if uv.exists():
        shown = subprocess.run([str(uv), "--version"], capture_output=True, text=True, check=False).stdout  # noqa: S603
        if shown.split()[1:2] == [version]:
            return uv
    pip = [str(venv / "bin" / "python"), "-m", "pip"]
    if subprocess.run([*pip, "--version"], capture_output=True, check=False).returncode != 0:  # noqa: S603
        _run(
            [str(venv / "bin" / "python"), "-m", "ensurepip"],
            "pip cannot be set up in .venv; remove .venv and run again",
        )
    _run(
        [*pip, "install", "--quiet", "--disable-pip-version-check", f"uv=={version}"],
        f"uv {version} could not be installed; check that the package index is reachable, then run again",
    )
    return uv


def _run(command: "list[str]", remedy: str) -> None:
    environ = {name: value for name, value in os.environ.items() if name not in {"VIRTUAL_ENV", "PYTHONPATH"}}
    with tempfile.TemporaryFile("w+") as output:
        done = subprocess.run(command, env=environ, stdout=output, stderr=subprocess.STDOUT, check=False)  # noqa: S603
        if done.returncode != 0:
            output.seek(0)
            last = [line.strip() for line in output.read().splitlines() if line.strip()][-3:]
            raise BootstrapError(f"{remedy}; it said: {' | '.join(last)[:600]}")


def _say(text: str) -> None:
    sys.stderr.write(f"sophia: {text}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2]))
