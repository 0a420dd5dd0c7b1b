"""A headless Chromium for the portal's test: the one there is, else from the system's packages."""

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence

from api_services.errors import ConfigurationError

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_PACKAGES = ("chromium", "chromium-driver")

Run = Callable[[Sequence[str]], int]


def find() -> str | None:
    """The browser's path, None when there is none."""
    return next((path for path in map(shutil.which, NAMES) if path is not None), None)


def ensure(*, run: Run | None = None, is_root: bool | None = None) -> None:
    """Install a browser when there is none and this may be done; `ConfigurationError` that says how otherwise."""
    if find() is not None:
        return
    root = os.geteuid() == 0 if is_root is None else is_root
    apt = shutil.which("apt-get")
    if apt is None or not root:
        raise ConfigurationError(
            "the portal's test needs a Chromium; install one so that 'chromium' is on PATH"
            " (Debian, as root: apt-get install chromium).",
            code="browser_missing",
        )
    call = run or _run
    if call([apt, "install", "-y", "-q", "--no-install-recommends", *_PACKAGES]) != 0:
        call([apt, "update", "-q"])
        if call([apt, "install", "-y", "-q", "--no-install-recommends", *_PACKAGES]) != 0:
            raise ConfigurationError(
                "a Chromium for the portal's test could not be installed from the system's packages; install one so"
                " that 'chromium' is on PATH.",
                code="browser_missing",
            )


def _run(command: Sequence[str]) -> int:
    environ = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    return subprocess.run(command, env=environ, stdout=subprocess.DEVNULL, check=False).returncode  # noqa: S603
