"""Wheels by uv: which distributions requirements come to on a runtime, at the pinned versions, and their files."""

import re
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from uv import find_uv_bin

from infra.packaging.errors import PackagingError, RequirementError, WheelMissingError
from infra.packaging.targets import ARCHITECTURES, GLIBC, Target

_TIMEOUT_SECONDS: Final = 300
_PIN: Final = re.compile(r"^(?P<name>[A-Za-z0-9][\w.-]*)==(?P<version>[^\s;]+)")
_NAME: Final = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]*(\[[\w,.-]+\])?( ; .+)?$")
_WITHOUT_WHEELS: Final = re.compile(r"(?P<name>[A-Za-z0-9][\w.-]*)[=>]=(?P<version>\S+) has no (usable )?wheels")


def normalised(name: str) -> str:
    """A distribution's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", re.split(r"[\[ ;]", name, maxsplit=1)[0]).lower()


def read_requirements(path: Path) -> tuple[str, ...]:
    """The names in a function's requirements, some for some platforms only (`name ; marker`).

    Raises `RequirementError` for anything else.
    """
    names: list[str] = []
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        text = line.partition("#")[0].strip()
        if not text:
            continue
        if not _NAME.fullmatch(text):
            raise RequirementError(
                f"{path.parent.name}/{path.name} line {number}: write the name alone; its version is pinned in the "
                "root requirements.txt"
            )
        names.append(text)
    return tuple(sorted(names, key=normalised))


def read_pins(path: Path) -> dict[str, str]:
    """Pinned versions by normalised name."""
    matches = (_PIN.match(line) for line in path.read_text().splitlines())
    return {normalised(match["name"]): match["version"] for match in matches if match}


def pin_of(dist_info: str) -> str:
    """`name==version` of a `.dist-info` folder by its name."""
    name, _, version = dist_info.removesuffix(".dist-info").partition("-")
    return f"{normalised(name)}=={version}"


def closure(requirements: tuple[str, ...], pins_file: Path, target: Target) -> list[str]:
    """`name==version` of everything that `requirements` need on `target`, from wheels alone.

    Raises `WheelMissingError` where a distribution has no wheel for `target`.
    """
    options = ["--quiet", "--no-header", "--no-annotate", "--constraint", str(pins_file), "-"]
    done = _uv_or_offline(target, ["compile"], options, "\n".join(requirements))
    if done.returncode != 0:
        raise _error(done.stderr, read_pins(pins_file), target)
    pins = [line.partition(";")[0].strip() for line in done.stdout.splitlines() if "==" in line]
    return sorted(f"{normalised(name)}=={version}" for name, _, version in (pin.partition("==") for pin in pins))


def install(pins: Sequence[str], target: Target, folder: Path) -> None:
    """Unpack the wheels of `pins`, and nothing that they need, into `folder`."""
    if not pins:
        return
    options = ["--quiet", "--no-deps", "--no-compile", "--link-mode", "hardlink", "--target", str(folder), *pins]
    done = _uv_or_offline(target, ["install"], options)
    if done.returncode != 0:
        raise PackagingError(f"uv cannot install for {target}: {' '.join(done.stderr.split())[-400:]}")


def _uv_or_offline(
    target: Target, command: list[str], options: list[str], text: str | None = None
) -> subprocess.CompletedProcess[str]:
    # The cached index first: the pins make its answer the answer, and nothing waits for the network.
    done = _uv(target, [*command, "--offline"], options, text)
    return done if done.returncode == 0 else _uv(target, command, options, text)


def _uv(target: Target, command: list[str], options: list[str], text: str | None) -> subprocess.CompletedProcess[str]:
    run = [find_uv_bin(), "--no-config", "pip", *command, "--only-binary", ":all:"]
    run += ["--python-platform", target.uv_platform, "--python-version", target.python_version, *options]
    try:
        return subprocess.run(run, input=text, capture_output=True, text=True, timeout=_TIMEOUT_SECONDS)  # noqa: S603
    except subprocess.TimeoutExpired as exc:
        raise PackagingError(f"uv did not finish in {_TIMEOUT_SECONDS} s; is the package index reachable?") from exc


def _error(output: str, pins: dict[str, str], target: Target) -> PackagingError:
    text = " ".join(output.split())
    match = _WITHOUT_WHEELS.search(text)
    if match is None:
        return PackagingError(f"uv cannot resolve the requirements for {target}: {text[-400:]}")
    name = normalised(match["name"])
    version = pins.get(name, match["version"])
    others = [Target(architecture, python) for architecture in ARCHITECTURES for python in GLIBC]
    with tempfile.TemporaryDirectory() as folder:
        dry = ["--dry-run", "--no-deps", "--target", folder, f"{name}=={version}"]
        fitting = [
            str(other) for other in others if other != target and not _uv(other, ["install"], dry, None).returncode
        ]
    offer = f"there are wheels for {'; '.join(fitting)}" if fitting else "there are no wheels for any Lambda runtime"
    return WheelMissingError(
        f"{name} {version} has no wheel for {target}: {offer}. Change the function's architecture or the dependency."
    )
