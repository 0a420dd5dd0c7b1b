"""Builds the zip of one function: its folder, the platform, what its handler reaches, and its wheels."""

import fcntl
import hashlib
import os
import tempfile
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Final

from infra.packaging.archive import COMPRESSOR, Entry, content_of, entry, write_archive
from infra.packaging.budgets import budget_of
from infra.packaging.bytecode import Compiler, bytecode_name, compile_sources, find_compiler, write_atomically
from infra.packaging.distributions import BOTOCORE_SERVICES, Bundle, recipe_digest, resolve
from infra.packaging.elf import fault_of
from infra.packaging.errors import BinaryMismatchError, HandlerMissingError, RecordError, RequirementError
from infra.packaging.imports import Reached, defined_names, module_file, reach
from infra.packaging.record import Record, digest_of, read_record, record_path
from infra.packaging.sources import checked, data_files, folder_files
from infra.packaging.targets import Architecture, Target
from infra.packaging.wheels import normalised, read_requirements

REPOSITORY: Final = Path(__file__).resolve().parents[2]

PLATFORM: Final = "functions/platform"


@dataclass(frozen=True, slots=True)
class FunctionPackage:
    """A built zip. `path` is absolute; `has_bytecode` is false where no Python of the function's version was found."""

    path: Path
    sha256: str
    size_bytes: int
    unzipped_bytes: int
    file_count: int
    architecture: Architecture
    python_version: str
    has_bytecode: bool


@dataclass(frozen=True, slots=True)
class Plan:
    """What goes into a package, before anything is installed. `key` names the exact inputs."""

    handler: str
    folder: Path
    files: dict[str, bytes]
    requirements: tuple[str, ...]
    reached: Reached
    key: str


def default_cache() -> Path:
    """`~/.cache/sophia/packages`, or below `XDG_CACHE_HOME`."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sophia" / "packages"


def build_function(
    handler: str,
    *,
    architecture: Architecture,
    python_version: str,
    output_dir: Path,
    root: Path = REPOSITORY,
    cache_dir: Path | None = None,
) -> FunctionPackage:
    """Build the zip of `handler` (`functions.interview_completed.handler.handler`), or return the cached one.

    Equal inputs give equal bytes. Safe to run beside other builds. Raises a `PackagingError` that says what to mend.
    """
    target = Target(architecture, python_version)
    compiler = find_compiler(python_version)
    planned = plan(handler, target, compiler, root)
    output_dir = output_dir.resolve()
    output_dir.mkdir(parents=True, exist_ok=True)
    path = output_dir / f"{planned.folder.name}-{architecture}.zip"
    with _locked(output_dir / f".{path.stem}.lock"):
        record = _standing(path, planned.key) or _build(path, planned, target, compiler, root, cache_dir)
    return FunctionPackage(
        path,
        record.sha256,
        record.size_bytes,
        record.unzipped_bytes,
        record.file_count,
        record.architecture,
        record.python_version,
        record.bytecode is not None,
    )


def plan(handler: str, target: Target, compiler: Compiler | None, root: Path = REPOSITORY) -> Plan:
    """Read what `handler` needs from the sources alone."""
    module, _, function = handler.rpartition(".")
    folder = _handler_folder(handler, module, function, root)
    files = dict(_named(folder_files(folder, root), root))
    starts = [module, *(_module_name(name) for name in files if name.endswith(".py"))]
    reached = reach(starts, root)
    platform = root / PLATFORM
    if platform.is_dir():
        files.update(_named(folder_files(platform, root), root))
    files.update(_named(reached.modules.values(), root))
    for package in sorted({path.parent for name, path in reached.modules.items() if name in reached.named}):
        if package != root / "functions":
            files.update(_named(data_files(package, root), root))
    requirements_file = folder / "requirements.txt"
    if not requirements_file.is_file():
        raise RequirementError(
            f"functions/{folder.name} has no requirements.txt; add one that names its packages, empty where it has none"
        )
    requirements = read_requirements(requirements_file)
    shared = platform / "requirements.txt"
    if shared.is_file():
        requirements = tuple(sorted({*requirements, *read_requirements(shared)}, key=normalised))
    unknown = (
        sorted(set(reached.services) - BOTOCORE_SERVICES) if {"boto3", "botocore"} & set(reached.third_party) else []
    )
    for service in unknown:
        raise RequirementError(
            f"{reached.services[service]} uses the AWS service '{service}', which packages leave out; add it to "
            "BOTOCORE_SERVICES in infra/packaging/distributions.py"
        )
    key = hashlib.sha256()
    stamp = compiler.version if compiler else "none"
    pins = (root / "requirements.txt").read_text()
    for part in (recipe_digest(), _own_digest(), handler, str(target), stamp, pins, *requirements):
        key.update(part.encode() + b"\0")
    for name, content in sorted(files.items()):
        key.update(f"{name}\0{hashlib.sha256(content).hexdigest()}\0".encode())
    return Plan(handler, folder, files, requirements, reached, key.hexdigest())


def undeclared(reached: Reached, requirements: tuple[str, ...], providers: Mapping[str, set[str]]) -> list[str]:
    """Third-party imports that no named requirement provides, each as a sentence's beginning.

    `providers` maps a top-level name to the normalised distributions that provide it.
    """
    named = {normalised(name) for name in requirements}
    faults: list[str] = []
    for top, where in sorted(reached.third_party.items()):
        # What a marker leaves out on this platform has no provider here, and is declared by its own name.
        offering = providers.get(top) or {normalised(top)} & named
        if not offering & named:
            wanted = " or ".join(sorted(offering)) or f"the package that provides {top}"
            faults.append(f"{where} imports {top}; name {wanted}")
    return faults


def _build(
    path: Path, planned: Plan, target: Target, compiler: Compiler | None, root: Path, cache_dir: Path | None
) -> Record:
    cache = cache_dir or default_cache()
    bundles = resolve(planned.requirements, root / "requirements.txt", target, compiler, cache)
    providers: dict[str, set[str]] = {}
    for bundle in bundles:
        for top in bundle.tops:
            providers.setdefault(top, set()).add(bundle.name)
    faults = undeclared(planned.reached, planned.requirements, providers)
    if faults:
        for top, names in packages_distributions().items():
            providers.setdefault(top, set()).update(normalised(name) for name in names)
        faults = undeclared(planned.reached, planned.requirements, providers)
        owner = PLATFORM if faults[0].startswith(f"{PLATFORM}/") else f"functions/{planned.folder.name}"
        raise RequirementError(f"{faults[0]} in {owner}/requirements.txt")
    _check_binaries(bundles, target)
    contents = dict(planned.files)
    if compiler is not None:
        sources = {name: content for name, content in contents.items() if name.endswith(".py")}
        compiled = compile_sources(compiler, sources, cache / "bytecode")
        contents.update({bytecode_name(name, target.python_version): pyc for name, pyc in compiled.items()})
    entries = {item.name: item for bundle in bundles for item in bundle.entries}
    entries.update({name: entry(name, content) for name, content in contents.items()})
    return _write(path, planned, target, compiler, bundles, list(entries.values()))


def _write(
    path: Path,
    planned: Plan,
    target: Target,
    compiler: Compiler | None,
    bundles: list[Bundle],
    entries: list[Entry],
) -> Record:
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".zip")
    os.close(descriptor)
    temporary = Path(name)
    try:
        write_archive(temporary, entries)
        content = temporary.read_bytes()
        unzipped_bytes = sum(item.size_bytes for item in entries)
        budget_of(planned.folder.name).check_sizes(planned.folder.name, len(content), unzipped_bytes)
        record = Record(
            handler=planned.handler,
            architecture=target.architecture,
            python_version=target.python_version,
            sha256=hashlib.sha256(content).hexdigest(),
            size_bytes=len(content),
            unzipped_bytes=unzipped_bytes,
            file_count=len(entries),
            bytecode=compiler.version if compiler else None,
            compressor=COMPRESSOR,
            key=planned.key,
            distributions={bundle.name: bundle.version for bundle in bundles},
            modules=tuple(sorted(planned.reached.modules)),
            imports=tuple(sorted(planned.reached.third_party)),
            binaries=tuple(sorted(name for bundle in bundles for name in bundle.binaries)),
        )
        temporary.chmod(0o644)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    write_atomically(record_path(path), record.to_json().encode())
    return record


def _standing(path: Path, key: str) -> Record | None:
    try:
        record = read_record(path)
    except RecordError:
        return None
    if record.key != key or not path.is_file():
        return None
    return record if digest_of(path) == record.sha256 else None


def _check_binaries(bundles: list[Bundle], target: Target) -> None:
    for bundle in bundles:
        for item in bundle.entries:
            if item.name in bundle.binaries:
                fault = fault_of(item.name, content_of(item), target)
                if fault is not None:
                    raise BinaryMismatchError(f"{bundle.name} {bundle.version}: {item.name} {fault}")


def _handler_folder(handler: str, module: str, function: str, root: Path) -> Path:
    parts = module.split(".")
    if len(parts) < 3 or parts[0] != "functions":
        raise HandlerMissingError(f"handler '{handler}': write it as functions.<folder>.<file>.<function>")
    folder = root / parts[0] / parts[1]
    if not folder.exists() and not folder.is_symlink():
        raise HandlerMissingError(f"handler '{handler}': functions/{parts[1]} is not there; add the function's folder")
    if not checked(folder, root).is_dir():
        raise HandlerMissingError(f"handler '{handler}': functions/{parts[1]} is a file; a function is a folder")
    path = module_file(module, root)
    if path is None:
        raise HandlerMissingError(f"handler '{handler}': there is no {'/'.join(parts)}.py")
    if function not in defined_names(checked(path, root)):
        raise HandlerMissingError(f"handler '{handler}': {'/'.join(parts)}.py defines no '{function}'")
    return folder


def _named(paths: Iterable[Path], root: Path) -> Iterator[tuple[str, bytes]]:
    for path in paths:
        yield path.relative_to(root).as_posix(), checked(path, root).read_bytes()


def _module_name(name: str) -> str:
    return name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


@lru_cache(maxsize=1)
def _own_digest() -> str:
    folder = Path(__file__).parent
    names = ("builder.py", "imports.py", "sources.py", "record.py")
    return hashlib.sha256(b"".join((folder / name).read_bytes() for name in names)).hexdigest()


@contextmanager
def _locked(path: Path) -> Generator[None]:
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
