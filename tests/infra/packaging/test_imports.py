"""Which modules a handler reaches."""

from pathlib import Path

import pytest

from infra.packaging.errors import HandlerMissingError, LinkRefusedError, PackagingError
from infra.packaging.imports import reach
from tests.support.packages import make_repository

START = ["functions.jobs.handler"]


def test_imports_are_followed_with_their_packages_and_those_inside_functions(tmp_path: Path) -> None:
    modules = set(reach(START, make_repository(tmp_path)).modules)
    assert modules == {
        "functions",
        "functions.jobs",
        "functions.jobs.handler",
        "functions.platform",
        "functions.platform.wrapper",
        "api_services",
        "api_services.orders",
        "api_services.orders.service",
        "api_services.orders.prices",
        "api_services.late",
        "api_services.late.lazily",
    }


def test_a_module_named_to_import_module_is_reached(tmp_path: Path) -> None:
    handler = "import importlib\n\ndef handler(e, c):\n    importlib.import_module('api_services.reports.service')\n"
    reached = reach(START, make_repository(tmp_path))
    assert "api_services.reports.service" not in reached.modules
    (tmp_path / "functions/jobs/handler.py").write_text(handler)
    assert "api_services.reports.service" in reach(START, tmp_path).modules


def test_what_only_a_type_checker_imports_is_left_out(tmp_path: Path) -> None:
    root = make_repository(tmp_path)
    (root / "functions/jobs/handler.py").write_text(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import pymongo\n"
        "    from api_services.reports import service\nelse:\n    import six\n"
    )
    reached = reach(START, root)
    assert "api_services.reports.service" not in reached.modules
    assert set(reached.third_party) == {"six"}


def test_third_party_names_come_with_the_place_that_imports_them(tmp_path: Path) -> None:
    root = make_repository(tmp_path)
    (root / "api_services/orders/prices.py").write_text("import json\n\nimport pymongo.errors\n\nPRICE = 1\n")
    assert reach(START, root).third_party == {"pymongo": "api_services/orders/prices.py:3"}


def test_an_import_guarded_for_its_absence_is_no_requirement(tmp_path: Path) -> None:
    root = make_repository(tmp_path)
    (root / "functions/jobs/handler.py").write_text("try:\n    import orjson\nexcept ImportError:\n    import six\n")
    assert set(reach(START, root).third_party) == {"six"}


def test_relative_imports_are_followed(tmp_path: Path) -> None:
    root = make_repository(tmp_path)
    (root / "functions/jobs/handler.py").write_text("from . import helper\nfrom ..platform import wrapper\n")
    (root / "functions/jobs/helper.py").write_text("")
    assert {"functions.jobs.helper", "functions.platform.wrapper"} <= set(reach(START, root).modules)


def test_a_module_that_is_not_there_is_named_with_its_importer(tmp_path: Path) -> None:
    root = make_repository(tmp_path)
    (root / "api_services/orders/prices.py").write_text("import api_services.nowhere\n")
    with pytest.raises(HandlerMissingError, match=r"prices\.py:1 imports api_services\.nowhere"):
        reach(START, root)


def test_reaching_for_the_infrastructure_is_refused(tmp_path: Path) -> None:
    root = make_repository(tmp_path)
    (root / "api_services/orders/prices.py").write_text("import infra\n")
    with pytest.raises(PackagingError, match=r"prices\.py:1 imports infra"):
        reach(START, root)


def test_a_module_with_a_syntax_error_is_named(tmp_path: Path) -> None:
    root = make_repository(tmp_path)
    (root / "api_services/orders/prices.py").write_text("PRICE = (\n")
    with pytest.raises(PackagingError, match=r"api_services\.orders\.prices is not valid Python"):
        reach(START, root)


def test_a_module_that_links_out_of_the_repository_is_refused(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "repository")
    (tmp_path / "outside.py").write_text("PRICE = 5\n")
    (root / "api_services/orders/prices.py").unlink()
    (root / "api_services/orders/prices.py").symlink_to(tmp_path / "outside.py")
    with pytest.raises(LinkRefusedError, match=r"orders/prices\.py links out of the repository"):
        reach(START, root)


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    root = make_repository(tmp_path)
    reach(START, root)
    (root / "api_services/orders/prices.py").write_text("import api_services.reports.service\nPRICE = 4\n")
    assert "api_services.reports.service" in reach(START, root).modules
