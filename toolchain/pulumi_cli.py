"""Find or obtain the Pulumi CLI: the one on PATH, else the SDK's own installer, else a build from its Go modules.

What was obtained is kept per version below the user's cache folder, made elsewhere and renamed into place, so that a
kill half-way leaves nothing that looks complete.
"""

import fcntl
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version as distribution_version
from pathlib import Path

from api_services.errors import ConfigurationError

VERSION = "3.274.1"
"""What is obtained where PATH has none; the same as in `pulumi_build/go.mod`."""

LANGUAGE_HOST = "pulumi-language-python"
ROOT = Path(__file__).parents[1]
_BUILD_MODULE = Path(__file__).parent / "pulumi_build"
_HOST_SCRIPT = Path(__file__).parent / "bin" / LANGUAGE_HOST
_PACKAGE = "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi"
_VERSION_VARIABLE = "github.com/pulumi/pulumi/sdk/v3/go/common/version.Version"
_INSTALL_TIMEOUT_SECONDS = 300
_CONNECT_TIMEOUT_SECONDS = 5
_BUILD_TIMEOUT_SECONDS = 3600
_TICK_SECONDS = 1.0

Progress = Callable[[str], None]
"""Called with one line about what is being done and for how long."""


@dataclass(frozen=True, slots=True)
class PulumiCli:
    """A Pulumi CLI that answered; `has_host` when a Python language host lies beside it or on PATH."""

    path: Path
    version: str
    has_host: bool

    @property
    def path_folders(self) -> tuple[str, ...]:
        """Folders to put first on PATH so that `pulumi` and a language host are found."""
        folders = (str(self.path.parent),)
        return folders if self.has_host else (*folders, str(_HOST_SCRIPT.parent))


def cache_folder(environ: Mapping[str, str]) -> Path:
    """`$XDG_CACHE_HOME/sophia/pulumi`, by default below `~/.cache`."""
    home = environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "sophia" / "pulumi"


def find_or_obtain(environ: Mapping[str, str], progress: Progress) -> PulumiCli:
    """The CLI to use; `ConfigurationError` that names the three ways when none works."""
    on_path = _on_path(environ)
    if on_path is not None:
        return on_path
    home = cache_folder(environ) / VERSION
    cached = _cached(home, environ)
    if cached is not None:
        return cached
    with _only_one(home, progress):
        cached = _cached(home, environ)
        return cached if cached is not None else _obtain(home, environ, progress)


def _cached(home: Path, environ: Mapping[str, str]) -> PulumiCli | None:
    """The CLI of the cache; it answered before it was renamed into place, so it is not asked again each time."""
    path = home / "bin" / "pulumi"
    if not os.access(path, os.X_OK):
        return None
    _put_host_beside(path)
    return PulumiCli(path, VERSION, has_host=_has_host(path, environ))


def _put_host_beside(path: Path) -> None:
    """Give a CLI of the cache our language host, unless the official one came with it."""
    beside, script = path.parent / LANGUAGE_HOST, _HOST_SCRIPT.read_bytes()
    if beside.exists():
        with beside.open("rb") as existing:
            head = existing.read(len(script) + 1)
        if not head.startswith(b"#!/bin/sh\n# Sophia") or head == script:
            return
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as part:
        part.write(script)
    Path(part.name).chmod(0o755)
    Path(part.name).rename(beside)


def _on_path(environ: Mapping[str, str]) -> PulumiCli | None:
    found = shutil.which("pulumi", path=environ.get("PATH"))
    if found is None:
        return None
    cli = _inspect(Path(found), environ)
    return cli if cli is not None and _sufficient(cli.version) else None


def _sufficient(version: str) -> bool:
    """The CLI's major version must be the SDK's, and it must not be older than the SDK."""
    have, need = _numbers(version), _numbers(distribution_version("pulumi"))
    return have[:1] == need[:1] and have >= need


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def _inspect(path: Path, environ: Mapping[str, str]) -> PulumiCli | None:
    """The CLI at `path` when it really is one: it runs and says its version."""
    if not path.is_file():
        return None
    try:
        shown = subprocess.run(  # noqa: S603
            [str(path), "version"],
            env={**environ, "PULUMI_SKIP_UPDATE_CHECK": "true"},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.fullmatch(r"v?(\d+\.\d+\.\d+\S*)", shown.stdout.strip())
    if shown.returncode != 0 or match is None:
        return None
    return PulumiCli(path, match[1], has_host=_has_host(path, environ))


def _has_host(path: Path, environ: Mapping[str, str]) -> bool:
    beside = path.resolve().parent / LANGUAGE_HOST
    return beside.exists() or shutil.which(LANGUAGE_HOST, path=environ.get("PATH")) is not None


@contextmanager
def _only_one(home: Path, progress: Progress) -> Generator[None]:
    home.parent.mkdir(parents=True, exist_ok=True)
    with (home.parent / f"{home.name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress("another process is obtaining the Pulumi CLI; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _obtain(home: Path, environ: Mapping[str, str], progress: Progress) -> PulumiCli:
    for leftover in home.parent.glob(f"{home.name}.part-*"):
        shutil.rmtree(leftover, ignore_errors=True)
    part = Path(tempfile.mkdtemp(prefix=f"{home.name}.part-", dir=home.parent))
    part.chmod(0o755)
    faults: list[str] = []
    try:
        for way in (_install, _build):
            fault = way(part, environ, progress)
            if fault is None and _inspect(part / "bin" / "pulumi", environ) is None:
                fault = "what it made does not run"
            if fault is None:
                if home.exists():
                    shutil.rmtree(home)
                part.rename(home)
                cli = _cached(home, environ)
                if cli is not None:
                    return cli
                fault = f"{home} cannot be used"
            faults.append(fault)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    raise ConfigurationError(
        f"no Pulumi CLI: put version {distribution_version('pulumi')} or newer on PATH, or let the SDK's installer"
        f" reach the internet ({faults[0]}), or have Go with a module proxy build it ({faults[1]}).",
        code="pulumi_cli_missing",
    )


def _install(part: Path, environ: Mapping[str, str], progress: Progress) -> str | None:
    """The SDK's own installer; None when it worked, else why not."""
    program = (
        "import socket, sys\n"
        f"socket.setdefaulttimeout({_CONNECT_TIMEOUT_SECONDS})\n"
        "from semver import VersionInfo\n"
        "from pulumi.automation import PulumiCommand\n"
        "PulumiCommand.install(root=sys.argv[1], version=VersionInfo.parse(sys.argv[2]))\n"
    )
    return _run_watched(
        [sys.executable, "-c", program, str(part), VERSION],
        # Without an answer from the name server the resolver would wait for far longer than the connection.
        {**environ, "RES_OPTIONS": "timeout:2 attempts:1"},
        f"downloading the Pulumi CLI {VERSION} with the SDK's installer",
        progress,
        timeout_seconds=_INSTALL_TIMEOUT_SECONDS,
    )


def _build(part: Path, environ: Mapping[str, str], progress: Progress) -> str | None:
    """`go build` of our module that requires the CLI's; None when it worked, else why not."""
    go = shutil.which("go", path=environ.get("PATH"))
    if go is None:
        return "there is no 'go' on PATH"
    return _run_watched(
        [
            go,
            "build",
            "-C",
            str(_BUILD_MODULE),
            "-mod=readonly",
            "-trimpath",
            "-ldflags",
            f"-s -w -X {_VERSION_VARIABLE}={VERSION}",
            "-gcflags",
            "all=-l",
            "-o",
            str(part / "bin" / "pulumi"),
            _PACKAGE,
        ],
        {**environ, "CGO_ENABLED": "0", "GOWORK": "off", "GOFLAGS": ""},
        f"building the Pulumi CLI {VERSION} from its Go modules (once; about five minutes)",
        progress,
        timeout_seconds=_BUILD_TIMEOUT_SECONDS,
    )


def _run_watched(
    command: list[str], environ: Mapping[str, str], doing: str, progress: Progress, *, timeout_seconds: float
) -> str | None:
    started = time.monotonic()
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(command, env=environ, stdout=output, stderr=subprocess.STDOUT)  # noqa: S603
        try:
            while process.poll() is None:
                elapsed = time.monotonic() - started
                progress(f"{doing}: {elapsed:.0f} s")
                if elapsed > timeout_seconds:
                    return f"it took longer than {timeout_seconds:g} s"
                try:
                    process.wait(_TICK_SECONDS)
                except subprocess.TimeoutExpired:
                    continue
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()
        if process.returncode == 0:
            return None
        output.seek(0)
        said = [line.strip() for line in output.read().splitlines() if line.strip()]
        return said[-1][:300] if said else f"exit code {process.returncode}"


def environment_with(cli: PulumiCli, environ: Mapping[str, str]) -> dict[str, str]:
    """`environ` with the CLI, its language host and this environment's Python first on PATH."""
    folders = [*cli.path_folders, str(Path(sys.executable).parent)]
    rest = [part for part in environ.get("PATH", os.defpath).split(os.pathsep) if part not in folders]
    path = os.pathsep.join([*folders, *rest])
    return {**environ, "PATH": path, "PULUMI_SKIP_UPDATE_CHECK": "true", "SOPHIA_ROOT": str(ROOT)}
