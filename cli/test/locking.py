"""Pins: `requirements*.in` compiled into `requirements*.txt` for every platform."""

import subprocess
import sys
from pathlib import Path

from api_services.errors import ConfigurationError
from toolchain.paths import ROOT

_OPTIONS = ("--quiet", "--python-version", "3.11", "--universal", "--no-header", "--no-emit-index-url")
_FILES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("requirements", ()),
    ("requirements-dev", ("-c", "requirements.txt")),
)


def lock_requirements() -> list[str]:
    """Compile both files and give their names; `ConfigurationError` with the resolver's words when it cannot."""
    uv = Path(sys.executable).with_name("uv")
    written: list[str] = []
    for name, extra in _FILES:
        command = [str(uv), "pip", "compile", *_OPTIONS, *extra, f"{name}.in", "-o", f"{name}.txt"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603
        if done.returncode != 0:
            said = " ".join(done.stderr.split())[:800]
            raise ConfigurationError(f"{name}.in cannot be resolved: {said}", code="lock_failed")
        written.append(f"{name}.txt")
    return written
