"""Packages with real wheels: for another machine than this one, run by themselves, and the same from every clone."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from api_services.queues import QUEUES, STANDALONE
from api_services.schedules import SCHEDULES
from cli.package import importtime
from infra.packaging import FunctionPackage, build_function, check_package, read_record
from infra.packaging.bytecode import find_compiler
from infra.packaging.elf import MAGIC, read_elf
from infra.packaging.errors import WheelMissingError
from infra.packaging.targets import Architecture, host_architecture, host_python_version
from tests.support.packages import HANDLER, make_repository, write

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[2]
FUNCTIONS = [spec.handler for spec in (*QUEUES, *STANDALONE, *SCHEDULES)]


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("packages")


def build(handler: str, output: Path, architecture: Architecture = "arm64", python: str = "3.13") -> FunctionPackage:
    return build_function(handler, architecture=architecture, python_version=python, output_dir=output)


@pytest.mark.parametrize("handler", FUNCTIONS)
def test_every_binary_is_for_the_functions_architecture_and_python(handler: str, output: Path) -> None:
    package = build(handler, output)
    record = check_package(package.path, architecture="arm64", python_version="3.13")
    with zipfile.ZipFile(package.path) as archive:
        assert archive.testzip() is None
        contents = {name: archive.read(name) for name in archive.namelist()}
    binaries = {name: read_elf(content) for name, content in contents.items() if content.startswith(MAGIC)}
    assert set(binaries) == set(record.binaries)
    assert "pydantic_core/_pydantic_core.cpython-313-aarch64-linux-gnu.so" in binaries
    assert {elf.machine for elf in binaries.values()} == {183}
    assert all(elf.glibc is None or elf.glibc <= (2, 34) for elf in binaries.values())
    named = [name for name in binaries if ".cpython-" in name]
    assert all(".cpython-313-" in name for name in named)
    leftovers = [name for name in contents if name.endswith((".pth", "/RECORD", "direct_url.json", ".pyi"))]
    assert leftovers == []
    assert not any(str(ROOT).encode() in content for content in contents.values())


@pytest.mark.parametrize("handler", FUNCTIONS)
def test_a_package_for_this_machine_imports_all_it_can_reach_by_itself(handler: str, output: Path) -> None:
    package = build(handler, output, host_architecture(), host_python_version())
    assert package.has_bytecode
    with importtime.unpacked(package.path) as folder:
        times = importtime.measure(folder, sys.executable, read_record(package.path), runs=1)
    assert times.handler_ms > 0


def test_shipped_bytecode_is_what_python_loads(output: Path) -> None:
    package = build(FUNCTIONS[0], output, host_architecture(), host_python_version())
    code = (
        "import sys, json; sys.path[:0] = [sys.argv[1]]; import pymongo, api_services.queues\n"
        "print(json.dumps([m.__spec__.cached for m in (pymongo, api_services.queues)]))"
    )
    with importtime.unpacked(package.path) as folder:
        (folder / "pymongo/__init__.py").write_text("raise ImportError('compiled again')\n")
        done = subprocess.run(  # noqa: S603
            [sys.executable, "-I", "-S", "-B", "-c", code, str(folder)], capture_output=True, text=True, check=True
        )
    assert all("__pycache__" in path for path in json.loads(done.stdout))


def test_a_dependency_without_a_wheel_is_named_with_what_there_is(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "repository")
    write(root / "functions/jobs/requirements.txt", "libsql\n")
    with pytest.raises(WheelMissingError) as caught:
        build_function(
            HANDLER,
            architecture="arm64",
            python_version="3.13",
            output_dir=tmp_path / "out",
            root=root,
            cache_dir=tmp_path / "cache",
        )
    assert caught.value.code == "package_wheel_missing"
    assert caught.value.message.startswith(
        "libsql 0.1.11 has no wheel for arm64, Python 3.13: there are wheels for x86_64"
    )


def test_two_clones_in_different_folders_build_equal_zips(tmp_path: Path) -> None:
    digests: list[dict[str, str]] = []
    script = (
        "import json, sys; from pathlib import Path; from infra.packaging import build_function\n"
        "built = [build_function(handler, architecture='arm64', python_version='3.13', output_dir=Path(sys.argv[1]),"
        " cache_dir=Path(sys.argv[2])) for handler in json.loads(sys.argv[3])]\n"
        "print(json.dumps({package.path.name: package.sha256 for package in built}))"
    )
    for number, name in enumerate(("one", "another place/two")):
        clone = tmp_path / name
        subprocess.run(["git", "clone", "-q", str(ROOT), str(clone)], check=True)  # noqa: S603, S607
        arguments = [str(tmp_path / f"out-{number}"), str(tmp_path / f"cache-{number}"), json.dumps(FUNCTIONS[:1])]
        done = subprocess.run(  # noqa: S603
            [sys.executable, "-c", script, *arguments],
            cwd=clone,
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": str(number), "SOURCE_DATE_EPOCH": str(number)},
            umask=0o077 if number else 0o022,
        )
        digests.append(json.loads(done.stdout))
    assert digests[0] == digests[1]
    assert len(digests[0]) == 1


def test_bytecode_is_there_when_this_machine_has_the_functions_python(output: Path) -> None:
    package = build(FUNCTIONS[0], output)
    compiler = find_compiler("3.13")
    assert package.has_bytecode is (compiler is not None)
    assert read_record(package.path).bytecode == (compiler.version if compiler else None)
