"""Third-party distributions of a function: resolved by uv for its runtime, pruned, compiled and compressed once.

A distribution's bundle is keyed by its version and runtime, so functions share it; a tree (which bundles a set of
requirements comes to) is keyed by the requirements and the pins. Both live in the user's cache.
"""

import hashlib
import json
import tempfile
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from infra.packaging import wheels
from infra.packaging.archive import COMPRESSOR, Entry, entry
from infra.packaging.bytecode import Compiler, bytecode_name, compile_sources, write_atomically
from infra.packaging.elf import MAGIC
from infra.packaging.errors import RequirementError
from infra.packaging.targets import Target
from infra.packaging.wheels import normalised, read_pins

BOTOCORE_SERVICES: Final = frozenset({"secretsmanager", "sqs"})
"""AWS services whose descriptions a package carries; all of them are 20 MB compressed (docs/adr/0006)."""

_RECIPE: Final = ("archive.py", "bytecode.py", "compile_worker.py", "distributions.py", "targets.py", "wheels.py")
"""Modules whose change makes every bundle anew."""

_WORKERS: Final = 2
_DROPPED_SUFFIXES: Final = frozenset({".pyi", ".pyc", ".pyo", ".pth", ".c", ".h", ".cpp", ".pyx", ".pxd", ".map"})
_DROPPED_FOLDERS: Final = frozenset({"__pycache__", "test", "tests"})
_DROPPED_NAMES: Final = frozenset({"py.typed", ".lock"})
_KEPT_METADATA: Final = frozenset({"METADATA", "entry_points.txt"})


@dataclass(frozen=True, slots=True)
class Bundle:
    """One distribution as it goes into zips. `tops` are the top-level names it provides."""

    name: str
    version: str
    key: str
    tops: tuple[str, ...]
    entries: tuple[Entry, ...]
    binaries: frozenset[str]


def resolve(
    requirements: tuple[str, ...], pins_file: Path, target: Target, compiler: Compiler | None, cache: Path
) -> list[Bundle]:
    """The distributions that `requirements` come to on `target`, from the cache where it has them.

    Raises `RequirementError` for a name without a pin, `WheelMissingError` where a distribution has no wheel.
    """
    if not requirements:
        return []
    pins = read_pins(pins_file)
    _check_pinned(requirements, pins)
    stamp = compiler.version if compiler else "none"
    parts = [*requirements, *(f"{name}=={version}" for name, version in sorted(pins.items())), str(target), stamp]
    tree = cache / "trees" / f"{_digest([*parts, recipe_digest()])}.json"
    cached = _load_tree(cache, tree)
    if cached is not None:
        return cached
    closure = wheels.closure(requirements, pins_file, target)
    _check_versions(closure, pins)
    keys = {pin: _digest([pin, str(target), stamp, recipe_digest()]) for pin in closure}
    found = {pin: _load(cache, key) for pin, key in keys.items()}
    found.update(_make([pin for pin, bundle in found.items() if bundle is None], keys, target, compiler, cache))
    write_atomically(tree, json.dumps(list(keys.values())).encode())
    return [bundle for bundle in found.values() if bundle is not None]


def _check_pinned(requirements: Iterable[str], pins: Mapping[str, str]) -> None:
    for name in requirements:
        if normalised(name) not in pins:
            raise RequirementError(f"{name} is not pinned: add it to requirements.in and compile requirements.txt")


def _check_versions(closure: Iterable[str], pins: Mapping[str, str]) -> None:
    for name, _, version in (pin.partition("==") for pin in closure):
        if pins.get(normalised(name)) != version:
            raise RequirementError(f"{name} {version} is not pinned: compile requirements.txt anew")


def _load_tree(cache: Path, tree: Path) -> list[Bundle] | None:
    """The bundles of a tree; none where the tree or one of its bundles is not in the cache."""
    if not tree.is_file():
        return None
    bundles = [_load(cache, key) for key in json.loads(tree.read_bytes())]
    present = [bundle for bundle in bundles if bundle is not None]
    return present if len(present) == len(bundles) else None


def _make(
    missing: list[str], keys: Mapping[str, str], target: Target, compiler: Compiler | None, cache: Path
) -> dict[str, Bundle]:
    """Install the distributions `missing` and put their bundles into the cache."""
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache, prefix=".tree-") as folder, ThreadPoolExecutor(_WORKERS) as pool:
        wheels.install(missing, target, Path(folder))
        infos = {wheels.pin_of(info.name): info for info in Path(folder).glob("*.dist-info")}
        tasks = {pin: pool.submit(_bundle, pin, keys[pin], infos[pin], target, compiler, cache) for pin in missing}
        return {pin: task.result() for pin, task in tasks.items()}


def _bundle(pin: str, key: str, info: Path, target: Target, compiler: Compiler | None, cache: Path) -> Bundle:
    record = (info / "RECORD").read_text()
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
    name, _, version = pin.partition("==")
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
    """Digest of how bundles are made: modules and compressor."""
    folder = Path(__file__).parent
    return _digest([COMPRESSOR, *((folder / name).read_text() for name in _RECIPE)])
