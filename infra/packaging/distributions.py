"""Third-party distributions of a function: resolved by uv for its runtime, pruned, compiled and compressed once.

A distribution's bundle is keyed by what it holds, so functions share it; a tree (which bundles a set of requirements
comes to) is keyed by the requirements and the pins. Both live in the user's cache.
"""

import hashlib
import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from uv import find_uv_bin

from infra.packaging.archive import COMPRESSOR, Entry, entry
from infra.packaging.bytecode import Compiler, bytecode_name, compile_sources, write_atomically
from infra.packaging.elf import MAGIC
from infra.packaging.errors import PackagingError, RequirementError, WheelMissingError
from infra.packaging.targets import ARCHITECTURES, GLIBC, Target

BOTOCORE_SERVICES: Final = frozenset({"secretsmanager", "sqs"})
"""AWS services whose descriptions a package carries; all of them are 20 MB compressed (docs/adr/0006)."""

_UV_TIMEOUT_SECONDS: Final = 300
_DROPPED_SUFFIXES: Final = frozenset({".pyi", ".pyc", ".pyo", ".pth", ".c", ".h", ".cpp", ".pyx", ".pxd", ".map"})
_DROPPED_FOLDERS: Final = frozenset({"__pycache__", "test", "tests"})
_DROPPED_NAMES: Final = frozenset({"py.typed", ".lock"})
_KEPT_METADATA: Final = frozenset({"METADATA", "entry_points.txt"})
_PIN: Final = re.compile(r"^(?P<name>[A-Za-z0-9][\w.-]*)==(?P<version>[^\s;]+)")
_NAME: Final = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]*(\[[\w,.-]+\])?( ; .+)?$")


@dataclass(frozen=True, slots=True)
class Bundle:
    """One distribution as it goes into zips. `tops` are the top-level names it provides."""

    name: str
    version: str
    key: str
    tops: tuple[str, ...]
    entries: tuple[Entry, ...]
    binaries: frozenset[str]


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
        if not _NAME.match(text):
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


def resolve(
    requirements: tuple[str, ...], pins_file: Path, target: Target, compiler: Compiler | None, cache: Path
) -> list[Bundle]:
    """The distributions that `requirements` come to on `target`, from the cache where it has them.

    Raises `RequirementError` for a name without a pin, `WheelMissingError` where a distribution has no wheel.
    """
    if not requirements:
        return []
    pins = read_pins(pins_file)
    for name in requirements:
        if normalised(name) not in pins:
            raise RequirementError(f"{name} is not pinned: add it to requirements.in and compile requirements.txt")
    stamp = compiler.version if compiler else "none"
    parts = [*requirements, *(f"{name}=={version}" for name, version in sorted(pins.items())), str(target), stamp]
    tree = cache / "trees" / f"{_digest([*parts, recipe_digest()])}.json"
    if tree.is_file():
        bundles = [_load(cache, key) for key in json.loads(tree.read_bytes())]
        present = [bundle for bundle in bundles if bundle is not None]
        if len(present) == len(bundles):
            return present
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache, prefix=".tree-") as folder:
        _install(requirements, pins_file, target, Path(folder))
        found = [_bundle(path, pins, target, compiler, cache) for path in sorted(Path(folder).glob("*.dist-info"))]
    write_atomically(tree, json.dumps([bundle.key for bundle in found]).encode())
    return found


def _install(requirements: tuple[str, ...], pins_file: Path, target: Target, folder: Path) -> None:
    options = ["--target", str(folder), "--no-compile", "--constraint", str(pins_file), *requirements]
    # The cached index first: pins make its answer the answer, and nothing waits for the network.
    if _uv(target, ["--offline", *options]).returncode == 0:
        return
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    done = _uv(target, options)
    if done.returncode != 0:
        raise _install_error(done.stderr, target)


def _uv(target: Target, options: list[str]) -> subprocess.CompletedProcess[str]:
    command = [find_uv_bin(), "--no-config", "pip", "install", "--only-binary", ":all:", "--link-mode", "hardlink"]
    command += ["--python-platform", target.uv_platform, "--python-version", target.python_version, *options]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=_UV_TIMEOUT_SECONDS)  # noqa: S603
    except subprocess.TimeoutExpired as exc:
        raise PackagingError(f"uv did not finish in {_UV_TIMEOUT_SECONDS} s; is the package index reachable?") from exc


def _install_error(output: str, target: Target) -> PackagingError:
    text = " ".join(output.split())
    match = re.search(r"Because (?P<name>[\w.-]+)==(?P<version>\S+) has no (?:usable )?wheels", text)
    if match is None:
        return PackagingError(f"uv cannot install the requirements for {target}: {text[-400:]}")
    name, version = match["name"], match["version"]
    others = [Target(architecture, python) for architecture in ARCHITECTURES for python in GLIBC]
    with tempfile.TemporaryDirectory() as folder:
        dry = ["--dry-run", "--no-deps", "--target", folder, f"{name}=={version}"]
        fitting = [str(other) for other in others if other != target and _uv(other, dry).returncode == 0]
    offer = f"there are wheels for {'; '.join(fitting)}" if fitting else "there are no wheels for any Lambda runtime"
    return WheelMissingError(
        f"{name} {version} has no wheel for {target}: {offer}. Change the function's architecture or the dependency."
    )


def _bundle(info: Path, pins: Mapping[str, str], target: Target, compiler: Compiler | None, cache: Path) -> Bundle:
    name, _, version = info.name.removesuffix(".dist-info").partition("-")
    name = normalised(name)
    if pins.get(name) != version:
        raise RequirementError(f"{name} {version} is not pinned: compile requirements.txt anew")
    record = (info / "RECORD").read_text()
    stamp = f"{compiler.version} {target.python_version}" if compiler else "none"
    key = _digest([name, version, record, stamp, recipe_digest()])
    cached = _load(cache, key)
    if cached is not None:
        return cached
    contents = _contents(info.parent, record, info.name)
    binaries = [file for file, content in contents.items() if content.startswith(MAGIC)]
    tops = sorted({_top(file) for file in contents if not file.startswith(f"{info.name}/")} - {""})
    if compiler is not None:
        sources = {file: content for file, content in contents.items() if file.endswith(".py")}
        compiled = compile_sources(compiler, sources)
        contents.update({bytecode_name(file, target.python_version): pyc for file, pyc in compiled.items()})
    entries = [
        entry(file, content, executable=file in binaries and ".so" not in file)
        for file, content in sorted(contents.items())
    ]
    bundle = Bundle(name, version, key, tuple(tops), tuple(entries), frozenset(binaries))
    _save(cache, bundle)
    return bundle


def _contents(tree: Path, record: str, info: str) -> dict[str, bytes]:
    names = [line.rsplit(",", 2)[0].strip('"') for line in record.splitlines() if line]
    return {name: (tree / name).read_bytes() for name in names if _kept(name, info) and (tree / name).is_file()}


def _kept(name: str, info: str) -> bool:
    *folders, file = name.split("/")
    if name.startswith(("../", "/")) or (folders and folders[0] == "bin"):
        return False
    if folders and folders[0] == info:
        return file in _KEPT_METADATA or "licenses" in folders or file.startswith(("LICENSE", "COPYING", "NOTICE"))
    if _DROPPED_FOLDERS.intersection(folders) or file in _DROPPED_NAMES or Path(file).suffix in _DROPPED_SUFFIXES:
        return False
    if folders[:2] == ["botocore", "data"] and len(folders) > 2:
        return folders[2] in BOTOCORE_SERVICES and not file.startswith("examples-")
    return folders[:2] != ["boto3", "data"] and folders[:2] != ["boto3", "examples"]


def _top(name: str) -> str:
    first, _, rest = name.partition("/")
    if rest:
        return first
    return first.partition(".")[0] if first.endswith((".py", ".so")) else ""


def _save(cache: Path, bundle: Bundle) -> None:
    index = {
        "name": bundle.name,
        "version": bundle.version,
        "tops": bundle.tops,
        "binaries": sorted(bundle.binaries),
        "entries": [
            [item.name, item.crc, item.size_bytes, len(item.data), item.deflated, item.executable]
            for item in bundle.entries
        ],
    }
    header = json.dumps(index).encode()
    content = b"".join([len(header).to_bytes(8, "little"), header, *(item.data for item in bundle.entries)])
    write_atomically(_bundle_path(cache, bundle.key), hashlib.sha256(content).digest() + content)


def _load(cache: Path, key: str) -> Bundle | None:
    try:
        stored = _bundle_path(cache, key).read_bytes()
    except FileNotFoundError:
        return None
    if hashlib.sha256(stored[32:]).digest() != stored[:32]:
        return None
    size = int.from_bytes(stored[32:40], "little")
    index = json.loads(stored[40 : 40 + size])
    position = 40 + size
    entries: list[Entry] = []
    for name, crc, size_bytes, length, deflated, executable in index["entries"]:
        entries.append(Entry(name, crc, size_bytes, stored[position : position + length], deflated, executable))
        position += length
    return Bundle(
        index["name"], index["version"], key, tuple(index["tops"]), tuple(entries), frozenset(index["binaries"])
    )


def _bundle_path(cache: Path, key: str) -> Path:
    return cache / "bundles" / key[:2] / key


def _digest(parts: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


@lru_cache(maxsize=1)
def recipe_digest() -> str:
    """Digest of how packages are made: these modules and the compressor. A change of either makes all anew."""
    folder = Path(__file__).parent
    return _digest([COMPRESSOR, *(path.read_text() for path in sorted(folder.glob("*.py")))])
