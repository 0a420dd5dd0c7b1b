"""The rules of the tree, read from the code itself."""

import ast
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from api_services.queues import QUEUES, STANDALONE
from api_services.schedules import SCHEDULES

ROOT = Path(__file__).parents[2]
FIRST_PARTY = ("api_services", "functions", "infra", "cli", "local", "toolchain", "policy", "benchmarks", "tests")
MAX_LINES = 450
DRIVERS = {"pymongo", "bson"}
MAY_IMPORT_PYMONGO = re.compile(r"^api_services/((\w+/)*\w*repository|mongo|delivery/failures)\.py$")


def tracked(*patterns: str) -> list[Path]:
    listed = subprocess.run(  # noqa: S603
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns],  # noqa: S607
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [ROOT / line for line in listed.stdout.splitlines() if (ROOT / line).is_file()]


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def python_files(*packages: str) -> list[Path]:
    return tracked(*(f"{package}/**.py" for package in packages))


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def imports(path: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.lineno, node.module


def test_the_scan_finds_the_tree() -> None:
    assert ROOT / "api_services" / "queues.py" in python_files("api_services")


def test_every_function_folder_is_a_queue_or_a_schedule_and_every_one_of_those_has_a_folder() -> None:
    folders = {path.parent.name for path in tracked("functions/*/handler.py")}
    assert folders == {spec.module for spec in (*QUEUES, *STANDALONE, *SCHEDULES)}


def test_a_handler_file_only_joins_a_spec_and_a_record_handler() -> None:
    long = {relative(path): len(path.read_text().splitlines()) for path in tracked("functions/*/handler.py")}
    assert {name: lines for name, lines in long.items() if lines > 20} == {}


def test_only_repositories_import_the_database_driver() -> None:
    offenders = [
        f"{relative(path)}:{line} imports {module}"
        for path in python_files("api_services", "functions", "infra")
        for line, module in imports(path)
        if module.split(".")[0] in DRIVERS and not MAY_IMPORT_PYMONGO.match(relative(path))
    ]
    assert offenders == [], "translate driver errors in a repository, with `raise ... from exc`"


def test_components_read_no_configuration_and_export_nothing() -> None:
    offenders = [
        f"{relative(path)}: {word}"
        for path in python_files("infra/components")
        for word in ("pulumi.Config(", "pulumi.export(", "urllib", "boto3")
        if word in path.read_text()
    ]
    assert offenders == []


def test_a_file_holds_one_thing() -> None:
    long = {relative(path): len(path.read_text().splitlines()) for path in python_files(*FIRST_PARTY)}
    assert {name: lines for name, lines in long.items() if lines > MAX_LINES} == {}


def test_no_error_is_swallowed() -> None:
    offenders = [
        f"{relative(path)}:{node.lineno}"
        for path in python_files(*FIRST_PARTY)
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or ast.unparse(node.type) in {"Exception", "BaseException"})
        and all(isinstance(statement, ast.Pass | ast.Continue) for statement in node.body)
    ]
    assert offenders == []


def test_main_is_a_table_of_contents() -> None:
    assert len((ROOT / "__main__.py").read_text().splitlines()) < 60


MACHINE_PATH = re.compile(r"(?<![\w.$}])/(work|root)/|(?<![\w.])/home/[a-z]+/")
UNFINISHED = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b")


@pytest.mark.parametrize("pattern", [MACHINE_PATH, UNFINISHED], ids=["a machine's path", "unfinished work"])
def test_no_file_carries(pattern: re.Pattern[str]) -> None:
    offenders = [
        f"{relative(path)}:{number}"
        for path in tracked("*.py", "*.md", "*.yaml", "*.yml", "*.toml", "*.sh", "sophia", "Dockerfile")
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if pattern.search(line)
    ]
    assert offenders == []
