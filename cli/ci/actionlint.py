"""actionlint: on PATH, in the user's cache, or built once from its Go module, since no wheel carries it."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from api_services.errors import ConfigurationError

VERSION: Final = "1.7.12"
_MODULE: Final = "github.com/rhysd/actionlint/cmd/actionlint"
_BUILD_SECONDS: Final = 300


def find_or_build(environ: Mapping[str, str]) -> Path:
    """The executable. Raises `ConfigurationError` where it is nowhere and Go cannot build it."""
    found = shutil.which("actionlint", path=environ.get("PATH"))
    if found:
        return Path(found)
    folder = Path(environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sophia" / "actionlint" / VERSION
    if (folder / "actionlint").is_file():
        return folder / "actionlint"
    go = shutil.which("go", path=environ.get("PATH"))
    if go is None:
        raise ConfigurationError(
            f"actionlint is not on PATH, and there is no Go to build it; install actionlint {VERSION} or Go.",
            code="actionlint_missing",
        )
    folder.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(  # noqa: S603
        [go, "install", f"{_MODULE}@v{VERSION}"],
        env={**environ, "GOBIN": str(folder)},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=_BUILD_SECONDS,
    )
    if done.returncode != 0:
        raise ConfigurationError(f"Go cannot build actionlint: {done.stderr.strip()[-300:]}", code="actionlint_missing")
    return folder / "actionlint"


def path_with(*tools: Path) -> str:
    """PATH that finds `tools` first."""
    return os.pathsep.join([*(str(tool.parent) for tool in tools), os.environ.get("PATH", "")])
