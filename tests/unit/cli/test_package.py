"""`./sophia package`: stages, budgets, what an import costs."""

from pathlib import Path

import pytest

from api_services.errors import InvalidInputError
from api_services.queues import QUEUES, STANDALONE
from api_services.schedules import SCHEDULES
from cli.package import importtime, lib
from infra.packaging.budgets import BUDGETS, DEFAULT, UNZIPPED_LIMIT_BYTES, UPLOAD_LIMIT_BYTES, budget_of
from infra.packaging.errors import BudgetError
from infra.packaging.record import Record
from infra.packaging.targets import Target, host_architecture, host_python_version

IMPORTTIME = """\
import time: self [us] | cumulative | imported package
import time:       100 |        100 |     json.decoder
import time:       200 |        300 |   json
import time:      4000 |       4300 | pymongo
import time:        50 |         50 |   pymongo.errors
Traceback (most recent call last):
import time:       500 |        550 | functions.jobs.handler
"""


def record(**changes: object) -> Record:
    values: dict[str, object] = {
        "handler": "functions.jobs.handler.handler",
        "architecture": "arm64",
        "python_version": "3.13",
        "sha256": "0" * 64,
        "size_bytes": 1,
        "unzipped_bytes": 2,
        "file_count": 3,
        "bytecode": None,
        "compressor": "zlib",
        "key": "k",
        "distributions": {},
        "modules": (),
        "imports": (),
        "binaries": (),
    }
    return Record(**{**values, **changes})  # pyright: ignore[reportArgumentType]


def test_a_stage_says_what_its_functions_run_on(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.one.yaml").write_text("config:\n  aws:region: eu-west-1\n")
    (tmp_path / "Pulumi.two.yaml").write_text("config:\n  sophia:architecture: x86_64\n  sophia:pythonVersion: 3.12\n")
    (tmp_path / "Pulumi.three.yaml").write_text("config:\n  sophia:architecture: host\n  sophia:pythonVersion: host\n")
    (tmp_path / "Pulumi.four.yaml").write_text("")
    assert lib.stage_target("one", tmp_path) == lib.stage_target("four", tmp_path) == Target("arm64", "3.13")
    assert lib.stage_target("two", tmp_path) == Target("x86_64", "3.12")
    assert lib.stage_target("three", tmp_path) == Target(host_architecture(), host_python_version())
    with pytest.raises(InvalidInputError, match="no stage 'five'; there are four, one, three, two"):
        lib.stage_target("five", tmp_path)


def test_every_function_of_the_registry_is_packaged_deployed_or_not() -> None:
    assert lib.function_names() == [spec.module for spec in (*QUEUES, *STANDALONE, *SCHEDULES)]


def test_every_budget_is_of_a_function_and_within_what_lambda_takes() -> None:
    assert set(BUDGETS) <= set(lib.function_names())
    for function in lib.function_names():
        budget = budget_of(function)
        assert budget.zip_bytes < UPLOAD_LIMIT_BYTES
        assert budget.unzipped_bytes < UNZIPPED_LIMIT_BYTES


def test_a_size_over_its_budget_is_said_with_both_numbers() -> None:
    DEFAULT.check_sizes("jobs", DEFAULT.zip_bytes, DEFAULT.unzipped_bytes)
    with pytest.raises(BudgetError, match=r"jobs: the zip is 13\.0 MB, its budget is 12\.0 MB") as caught:
        DEFAULT.check_sizes("jobs", 13_000_000, 1)
    assert caught.value.code == "package_budget"
    with pytest.raises(BudgetError, match=r"the unzipped package is 40\.1 MB, its budget is 40\.0 MB"):
        DEFAULT.check_sizes("jobs", 1, 40_100_000)


def test_an_import_over_its_budget_is_found_among_those_within() -> None:
    within = lib.Built("a", record(), Path("a.zip"), DEFAULT, importtime.ImportTimes(DEFAULT.import_ms, 9e9))
    unmeasured = lib.Built("b", record(), Path("b.zip"), DEFAULT)
    over = lib.Built("c", record(), Path("c.zip"), DEFAULT, importtime.ImportTimes(DEFAULT.import_ms + 1, 0))
    assert lib.over_budget([within, unmeasured]) is None
    error = lib.over_budget([within, unmeasured, over])
    assert error is not None
    assert error.message.startswith("c: importing the handler takes 601 ms, its budget is 600 ms")


def test_importtime_is_read_parents_first_and_summed_by_package() -> None:
    costs = importtime.parse(IMPORTTIME)
    assert [(cost.module, cost.depth) for cost in costs] == [
        ("functions.jobs.handler", 0),
        ("pymongo.errors", 1),
        ("pymongo", 0),
        ("json", 1),
        ("json.decoder", 2),
    ]
    assert costs[2] == importtime.ImportCost("pymongo", 0, 4.0, 4.3)
    assert importtime.by_package(costs)[:2] == [("pymongo", 4.05), ("functions", 0.5)]


def test_an_unknown_function_is_refused_with_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    from cli.app import run

    assert run(["package", "nothing"]) == 2
    assert "error (unknown_function): No function 'nothing'; there are interview_completed" in capsys.readouterr().err
    assert run(["package", "--stage", "nothing"]) == 2
    assert "error (unknown_stage)" in capsys.readouterr().err
    assert run(["package", "--arch", "arm"]) == 2
    assert "error (package): architecture 'arm'" in capsys.readouterr().err
