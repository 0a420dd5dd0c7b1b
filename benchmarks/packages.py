"""The built zips of this machine's architecture and Python, unpacked, and child processes that see nothing else."""

import json
import platform
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from api_services.queues import QUEUES, STANDALONE
from api_services.schedules import SCHEDULES
from infra.packaging import Architecture, build_function

TIMEOUT_SECONDS: Final = 120.0

ARCHITECTURES: Mapping[str, Architecture] = {"x86_64": "x86_64", "aarch64": "arm64", "arm64": "arm64"}


@dataclass(frozen=True, slots=True)
class Unpacked:
    """One function: its handler's module, and a folder as Lambda has it at `/var/task`."""

    module: str
    handler_module: str
    memory_mb: int
    folder: Path


@contextmanager
def unpacked(limit: int | None = None) -> Generator[list[Unpacked]]:
    """Every function's package, or the first `limit`; the folders go away at the end."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    with tempfile.TemporaryDirectory(prefix="sophia-bench-") as home:
        found: list[Unpacked] = []
        for spec in (*QUEUES, *STANDALONE, *SCHEDULES)[:limit]:
            package = build_function(
                spec.handler,
                architecture=ARCHITECTURES[platform.machine()],
                python_version=version,
                output_dir=Path(home),
            )
            folder = Path(home) / spec.module
            with zipfile.ZipFile(package.path) as archive:
                archive.extractall(folder)
            found.append(Unpacked(spec.module, spec.handler.rpartition(".")[0], spec.memory_mb, folder))
        yield found


def run_isolated(code: str, folder: Path, *arguments: str, environ: Mapping[str, str] | None = None) -> Any:
    """The JSON that `code` prints last, in a fresh interpreter that sees `folder` and the standard library."""
    start = "import sys\nsys.path.insert(0, sys.argv[1])\n"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-B", "-c", start + code, str(folder), *arguments],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        env=dict(environ or {}),
        cwd=folder,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{folder.name} failed by itself: {done.stderr.strip()[-2000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])
