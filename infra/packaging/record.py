"""The record beside each zip: what was built, for which runtime, from what; infrastructure reads it back."""

import json
import zipfile
from dataclasses import asdict, dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from infra.packaging.elf import MAGIC, fault_of
from infra.packaging.errors import BinaryMismatchError, RecordError
from infra.packaging.targets import Architecture, Target


@dataclass(frozen=True, slots=True)
class Record:
    """What a zip is. `bytecode` is the complete Python version that compiled it, none where it has only sources.

    `modules` are the first-party modules that the handler reaches, `imports` the third-party names, lazily or not.
    """

    handler: str
    architecture: Architecture
    python_version: str
    sha256: str
    size_bytes: int
    unzipped_bytes: int
    file_count: int
    bytecode: str | None
    compressor: str
    key: str
    distributions: dict[str, str]
    modules: tuple[str, ...]
    imports: tuple[str, ...]
    binaries: tuple[str, ...]

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=1, sort_keys=True) + "\n"


def record_path(zip_path: Path) -> Path:
    """`interview_completed-arm64.zip` has its record in `interview_completed-arm64.json`."""
    return zip_path.with_suffix(".json")


def read_record(zip_path: Path) -> Record:
    """Read the record of a zip. Raises `RecordError` where there is none or it does not read as one."""
    path = record_path(zip_path)
    try:
        return TypeAdapter(Record).validate_json(path.read_bytes())
    except FileNotFoundError as exc:
        raise RecordError(f"{zip_path.name} has no record; run ./sophia package") from exc
    except ValidationError as exc:
        raise RecordError(f"{path.name} is not a package's record; delete it and run ./sophia package") from exc


def digest_of(path: Path) -> str:
    """SHA-256 of a file, taken once per process as long as the file stays as it is."""
    status = path.stat()
    return _digest(path, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=64)
def _digest(path: Path, _mtime_ns: int, _size: int) -> str:
    return sha256(path.read_bytes()).hexdigest()


def check_package(zip_path: Path, *, architecture: Architecture, python_version: str) -> Record:
    """Hold a zip against the function that will run it, from its record and from the binaries in it.

    Raises `RecordError` where architecture, Python or contents differ from the record's, `BinaryMismatchError` for a
    shared object that the runtime cannot load.
    """
    record = read_record(zip_path)
    target = Target(architecture, python_version)
    built = f"{record.architecture}, Python {record.python_version}"
    if built != str(target):
        raise RecordError(f"{zip_path.name} was built for {built}; the function runs on {target}")
    try:
        digest = digest_of(zip_path)
    except FileNotFoundError as exc:
        raise RecordError(f"{zip_path.name} is not there; run ./sophia package") from exc
    if digest != record.sha256:
        raise RecordError(f"{zip_path.name} is not the file its record names; run ./sophia package")
    with zipfile.ZipFile(zip_path) as archive:
        named = {name for name in archive.namelist() if ".so" in name}
        for name in sorted(named | set(record.binaries)):
            binary = archive.read(name)
            fault = fault_of(name, binary, target) if binary.startswith(MAGIC) else None
            if fault is not None:
                raise BinaryMismatchError(f"{zip_path.name}: {name} {fault}")
    return record
