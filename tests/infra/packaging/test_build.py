"""Building a zip from a small repository: what is in it, and that equal inputs give equal bytes."""

import json
import os
import shutil
import stat
import subprocess
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path

import pulumi
import pytest

from infra.packaging import FunctionPackage, build_function, check_package, read_record
from infra.packaging.errors import (
    BinaryMismatchError,
    HandlerMissingError,
    LinkRefusedError,
    PackagingError,
    RecordError,
    RequirementError,
)
from tests.support.packages import HANDLER, make_elf, make_repository, write

PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"
TAG = f"cpython-{sys.version_info[0]}{sys.version_info[1]}"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "repository")


def build(root: Path, handler: str = HANDLER, output: Path | None = None, python: str = PYTHON) -> FunctionPackage:
    output_dir = output or root.parent / f"{root.name}-out"
    return build_function(
        handler,
        architecture="arm64",
        python_version=python,
        output_dir=output_dir,
        root=root,
        cache_dir=root.parent / "cache",
    )


def files_of(package: FunctionPackage) -> dict[str, bytes]:
    with zipfile.ZipFile(package.path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def sources_of(package: FunctionPackage) -> set[str]:
    return {name for name in files_of(package) if not name.endswith(".pyc")}


def test_a_zip_holds_its_folder_the_platform_and_what_the_handler_reaches(root: Path) -> None:
    assert sources_of(build(root)) == {
        "api_services/__init__.py",
        "api_services/late/__init__.py",
        "api_services/late/lazily.py",
        "api_services/orders/__init__.py",
        "api_services/orders/prices.py",
        "api_services/orders/service.py",
        "api_services/orders/table.json",
        "functions/__init__.py",
        "functions/jobs/__init__.py",
        "functions/jobs/handler.py",
        "functions/platform/__init__.py",
        "functions/platform/wrapper.py",
    }


def test_the_zip_runs_by_itself(root: Path, tmp_path: Path) -> None:
    target = tmp_path / "task"
    with zipfile.ZipFile(build(root).path) as archive:
        archive.extractall(target)
    code = "import sys; sys.path[:0] = [sys.argv[1]]; from functions.jobs.handler import handler; print(handler({}, 0))"
    done = subprocess.run([sys.executable, "-I", "-c", code, str(target)], capture_output=True, text=True)  # noqa: S603
    assert (done.stdout, done.stderr) == ("(3, 'late')\n", "")


def test_a_change_elsewhere_leaves_the_zip_and_a_change_within_does_not(root: Path) -> None:
    first = build(root)
    write(root / "api_services/reports/service.py", "VALUE = 2\n")
    write(root / "functions/other/handler.py", "def handler(event, context):\n    return 1\n")
    assert build(root).sha256 == first.sha256
    write(root / "api_services/late/lazily.py", "NAME = 'later'\n")
    assert build(root).sha256 != first.sha256


def test_two_clones_give_equal_bytes_whatever_their_place_dates_order_and_modes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = make_repository(tmp_path / "one")
    package = build(one)
    old = os.umask(0o077)
    try:
        two = tmp_path / "quite/another place"
        for path in sorted(one.rglob("*"), reverse=True):
            if path.is_file():
                (two / path.relative_to(one)).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, two / path.relative_to(one))
                os.utime(two / path.relative_to(one), (0, 0))
        for epoch in ("0", "1"):
            monkeypatch.setenv("SOURCE_DATE_EPOCH", epoch)
            monkeypatch.setenv("PYTHONHASHSEED", "77")
            again = build_function(
                HANDLER,
                architecture="arm64",
                python_version=PYTHON,
                output_dir=tmp_path / f"out-{epoch}",
                root=two,
                cache_dir=tmp_path / f"cache-{epoch}",
            )
            assert again.sha256 == package.sha256
            assert stat.S_IMODE(again.path.stat().st_mode) == 0o644
    finally:
        os.umask(old)


def test_no_path_of_the_machine_is_in_the_zip(root: Path) -> None:
    for name, content in files_of(build(root)).items():
        assert str(root).encode() not in content, name
    pyc = files_of(build(root))[f"functions/jobs/__pycache__/handler.{TAG}.pyc"]
    assert b"/var/task/functions/jobs/handler.py" in pyc


def test_a_developers_leftovers_change_nothing(root: Path) -> None:
    first = build(root)
    for rubbish in (
        "functions/jobs/__pycache__/x.cpython-39.pyc",
        "functions/jobs/sub/__pycache__/y.pyc",
        "functions/.venv/lib/z.py",
        "functions/jobs/.env",
        "functions/jobs/tests/test_handler.py",
        "api_services/orders/__pycache__/prices.cpython-313.pyc",
    ):
        write(root / rubbish, "OPENAI_API_KEY=sk-test")
    (first.path).unlink()
    again = build(root)
    assert again.sha256 == first.sha256
    assert not any(b"sk-test" in content for content in files_of(again).values())


def test_every_entry_is_readable_by_others_and_dated(root: Path) -> None:
    (root / "api_services/orders/prices.py").chmod(0o600)
    with zipfile.ZipFile(build(root).path) as archive:
        assert archive.testzip() is None
        for info in archive.infolist():
            assert (info.external_attr >> 16) & stat.S_IROTH, info.filename
            assert info.date_time >= (1980, 1, 1, 0, 0, 0)


def test_a_link_to_a_shared_folder_ships_its_contents_and_a_dangling_one_is_named(root: Path) -> None:
    write(root / "functions/shared/rules.py", "RULE = 1\n")
    (root / "functions/jobs/shared").symlink_to("../shared")
    assert files_of(build(root))["functions/jobs/shared/rules.py"] == b"RULE = 1\n"
    (root / "functions/jobs/lost.py").symlink_to("../nowhere.py")
    with pytest.raises(LinkRefusedError, match=r"functions/jobs/lost\.py links to nothing"):
        build(root)


def test_nothing_changed_means_nothing_is_written(root: Path) -> None:
    first = build(root)
    written = first.path.stat().st_mtime_ns, first.path.stat().st_ino
    second = build(root)
    assert second == first
    assert (second.path.stat().st_mtime_ns, second.path.stat().st_ino) == written


def test_a_zip_that_was_changed_or_lost_is_built_again(root: Path) -> None:
    first = build(root)
    first.path.write_bytes(b"PK")
    assert build(root).sha256 == first.sha256 == sha256(first.path.read_bytes()).hexdigest()
    first.path.with_suffix(".json").write_text("{")
    assert build(root) == first
    assert check_package(first.path, architecture="arm64", python_version=PYTHON).sha256 == first.sha256


def test_builds_side_by_side_agree(root: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        packages = list(pool.map(build, [root] * 4))
    assert len({package.sha256 for package in packages}) == 1
    assert sha256(packages[0].path.read_bytes()).hexdigest() == packages[0].sha256
    assert [path.suffix for path in packages[0].path.parent.iterdir() if not path.name.startswith(".")].count(
        ".zip"
    ) == 1


@pytest.mark.parametrize("folder", ["", "infra", "/"])
def test_the_working_directory_does_not_matter(root: Path, folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    first = build(root)
    monkeypatch.chdir(root / folder)
    assert build(root) == first


def test_without_a_python_of_the_functions_version_there_is_no_bytecode_and_it_says_so(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(root))
    monkeypatch.setenv("PYENV_ROOT", str(root))
    other = next(version for version in ("3.12", "3.14") if version != PYTHON)
    package = build(root, python=other)
    assert package.has_bytecode is False
    assert read_record(package.path).bytecode is None
    assert not any(name.endswith(".pyc") for name in files_of(package))


def test_the_bytecode_is_valid_and_unchecked(root: Path) -> None:
    import importlib.util

    for name, content in files_of(build(root)).items():
        if name.endswith(".pyc"):
            assert content[:4] == importlib.util.MAGIC_NUMBER
            assert int.from_bytes(content[4:8], "little") == 0b01


def mend(root: Path, how: str) -> str:
    if how == "no folder":
        return "functions.nowhere.handler.handler"
    if how == "a file for a folder":
        shutil.rmtree(root / "functions/jobs")
        write(root / "functions/jobs", "")
    elif how == "no handler file":
        (root / "functions/jobs/handler.py").unlink()
    elif how == "no such function":
        return "functions.jobs.handler.other"
    elif how == "short":
        return "handler.handler"
    return HANDLER


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("no folder", "functions/nowhere is not there"),
        ("a file for a folder", "functions/jobs is a file"),
        ("no handler file", r"there is no functions/jobs/handler\.py"),
        ("no such function", r"functions/jobs/handler\.py defines no 'other'"),
        ("short", "write it as functions"),
    ],
)
def test_a_code_path_that_is_missing_or_of_the_wrong_kind_is_named(root: Path, how: str, words: str) -> None:
    with pytest.raises(HandlerMissingError, match=words) as caught:
        build(root, mend(root, how))
    assert caught.value.code == "package_handler_missing"
    assert not list((root.parent).glob("*-out/*.zip"))


def test_a_function_without_requirements_is_told_to_add_them(root: Path) -> None:
    (root / "functions/jobs/requirements.txt").unlink()
    with pytest.raises(RequirementError, match=r"functions/jobs has no requirements\.txt"):
        build(root)


def test_an_import_without_its_requirement_fails_the_build(root: Path) -> None:
    write(root / "api_services/late/lazily.py", "import pymongo\n\nNAME = 'late'\n")
    with pytest.raises(
        RequirementError, match=r"lazily\.py:1 imports pymongo; name .* in functions/jobs/requirements\.txt"
    ):
        build(root)


def test_a_service_that_packages_leave_out_is_refused(root: Path) -> None:
    write(root / "api_services/late/lazily.py", "import botocore.session as s\n\nNAME = s.create_client('ec2')\n")
    with pytest.raises(RequirementError, match=r"lazily\.py:3 uses the AWS service 'ec2'"):
        build(root)


def test_the_record_is_held_against_the_function(root: Path) -> None:
    package = build(root)
    with pytest.raises(RecordError, match=r"built for arm64, Python .*; the function runs on x86_64"):
        check_package(package.path, architecture="x86_64", python_version=PYTHON)
    package.path.write_bytes(package.path.read_bytes() + b"\0")
    with pytest.raises(RecordError, match="is not the file its record names"):
        check_package(package.path, architecture="arm64", python_version=PYTHON)
    package.path.unlink()
    with pytest.raises(RecordError, match=r"jobs-arm64\.zip is not there"):
        check_package(package.path, architecture="arm64", python_version=PYTHON)
    package.path.with_suffix(".json").unlink()
    with pytest.raises(RecordError, match="has no record"):
        check_package(package.path, architecture="arm64", python_version=PYTHON)


def test_a_binary_for_another_machine_is_found_in_the_zip_itself(root: Path) -> None:
    package = build(root)
    name = f"pydantic_core/_pydantic_core.{TAG}-aarch64-linux-gnu.so"
    with zipfile.ZipFile(package.path, "a") as archive:
        archive.writestr(name, make_elf(62))
    record = json.loads(package.path.with_suffix(".json").read_text())
    record["sha256"] = sha256(package.path.read_bytes()).hexdigest()
    package.path.with_suffix(".json").write_text(json.dumps(record))
    with pytest.raises(BinaryMismatchError, match=f"{name} is for x86_64, the function is arm64"):
        check_package(package.path, architecture="arm64", python_version=PYTHON)


def test_every_fault_is_a_sentence_with_a_code(root: Path) -> None:
    with pytest.raises(PackagingError) as caught:
        build(root, "nonsense")
    assert caught.value.code.startswith("package")
    assert "\n" not in caught.value.message


def test_a_package_over_its_budget_fails_the_build_and_leaves_nothing(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from infra.packaging import budgets

    monkeypatch.setitem(budgets.BUDGETS, "jobs", budgets.Budget(zip_bytes=100, unzipped_bytes=10**6, import_ms=1))
    with pytest.raises(PackagingError, match="jobs: the zip is") as caught:
        build(root)
    assert caught.value.code == "package_budget"
    assert [path.name for path in (root.parent / f"{root.name}-out").iterdir()] == [".jobs-arm64.lock"]


def test_a_function_whose_package_is_for_another_machine_is_refused_at_preview(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from infra import functions
    from infra.config import read_stage_config
    from tests.infra.engine import stage_values

    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    config = read_stage_config("dev", stage_values("dev", architecture="x86_64"), {})

    def for_arm(*_: object, **__: object) -> FunctionPackage:
        return build(root)

    monkeypatch.setattr(functions, "build_function", for_arm)
    with pytest.raises(pulumi.RunError, match=r"jobs-arm64\.zip was built for arm64, .*; the function runs on x86_64"):
        functions.package(HANDLER, config)
