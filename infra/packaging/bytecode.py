"""Bytecode for the function's Python, from an interpreter of that version where this machine has one.

`/var/task` is read-only: without bytecode in the package each cold start compiles every module again.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from infra.packaging import compile_worker
from infra.packaging.errors import PackagingError

OVERRIDE: Final = "SOPHIA_BYTECODE_PYTHON"
"""Environment variable with the path of the interpreter to compile with."""

_BATCH: Final = 150
"""Files that make a second worker worth its start."""

_TIMEOUT_SECONDS: Final = 120


@dataclass(frozen=True, slots=True)
class Compiler:
    """An interpreter that makes bytecode; `version` is complete (`3.13.5`), since a patch release may compile anew."""

    python: str
    version: str


def find_compiler(python_version: str) -> Compiler | None:
    """An interpreter of `python_version`: the override, this one, one on PATH or one of pyenv's; none where none is."""
    return _find(python_version, os.environ.get(OVERRIDE, ""), os.environ.get("PATH", ""))


@lru_cache(maxsize=8)
def _find(python_version: str, override: str, _path: str) -> Compiler | None:
    if sys.version_info[:2] == tuple(map(int, python_version.split("."))):
        return Compiler(sys.executable, ".".join(map(str, sys.version_info[:3])))
    for candidate in _candidates(python_version, override):
        version = _version_of(candidate)
        if version is not None and version.rpartition(".")[0] == python_version:
            return Compiler(candidate, version)
    return None


def _candidates(python_version: str, override: str) -> Iterator[str]:
    if override:
        yield override
    name = f"python{python_version}"
    found = shutil.which(name)
    if found:
        yield found
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    for path in sorted(pyenv.glob(f"versions/{python_version}.*/bin/{name}"), reverse=True):
        yield str(path)


def _version_of(python: str) -> str | None:
    code = "import sys; print('.'.join(map(str, sys.version_info[:3])))"
    try:
        done = subprocess.run([python, "-I", "-S", "-c", code], capture_output=True, text=True, timeout=20)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def bytecode_name(name: str, python_version: str) -> str:
    """Where Python looks for the bytecode of the module `name`: `a/__pycache__/b.cpython-313.pyc`."""
    folder, _, file = name.rpartition("/")
    pyc = f"__pycache__/{file.removesuffix('.py')}.cpython-{python_version.replace('.', '')}.pyc"
    return f"{folder}/{pyc}" if folder else pyc


def compile_sources(compiler: Compiler, sources: Mapping[str, bytes], cache: Path | None = None) -> dict[str, bytes]:
    """Bytecode by module name; names that do not compile are left out. `cache` keeps it by content."""
    results: dict[str, bytes] = {}
    keys: dict[str, Path] = {}
    if cache is not None:
        for name, source in sources.items():
            digest = hashlib.sha256(f"{compiler.version}\0{name}\0{_worker_digest()}\0".encode() + source).hexdigest()
            keys[name] = cache / digest[:2] / digest
            if keys[name].is_file():
                results[name] = keys[name].read_bytes()
    missing = [name for name in sources if name not in results]
    parts = [missing] if len(missing) < _BATCH else [missing[::2], missing[1::2]]
    with ThreadPoolExecutor(len(parts)) as pool:
        runs = [pool.submit(_run, compiler, {name: sources[name] for name in part}) for part in parts]
        for run in runs:
            results.update(run.result())
    for name in missing if cache is not None else ():
        write_atomically(keys[name], results[name])
    return {name: result for name, result in results.items() if result}


def _run(compiler: Compiler, sources: Mapping[str, bytes]) -> dict[str, bytes]:
    if not sources:
        return {}
    header = json.dumps([[name, len(source)] for name, source in sources.items()])
    command = [compiler.python, "-I", "-S", "-W", "ignore", compile_worker.__file__]
    done = subprocess.run(  # noqa: S603
        command,
        input=b"".join([header.encode(), b"\n", *sources.values()]),
        capture_output=True,
        timeout=_TIMEOUT_SECONDS,
        env={"PYTHONHASHSEED": "0"},
    )
    if done.returncode != 0:
        raise PackagingError(f"{compiler.python} did not compile the modules: {done.stderr.decode()[-300:].strip()}")
    output, position, results = done.stdout, 0, dict[str, bytes]()
    for name in sources:
        length = int.from_bytes(output[position : position + 4], "little")
        results[name] = output[position + 4 : position + 4 + length]
        position += 4 + length
    return results


@lru_cache(maxsize=1)
def _worker_digest() -> str:
    return hashlib.sha256(Path(compile_worker.__file__).read_bytes()).hexdigest()


def write_atomically(path: Path, content: bytes) -> None:
    """Write `content` so that another process sees all of it or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=".")
    with os.fdopen(descriptor, "wb") as output:
        output.write(content)
    Path(temporary).chmod(0o644)
    Path(temporary).replace(path)
