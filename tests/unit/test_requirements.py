"""What ships names what it imports, so that a package never lacks a module and never carries one for nothing."""

import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from api_services.queues import QUEUES, STANDALONE
from api_services.schedules import SCHEDULES
from infra.packaging.builder import REPOSITORY, plan, undeclared
from infra.packaging.distributions import BOTOCORE_SERVICES
from infra.packaging.imports import FIRST_PARTY, reach
from infra.packaging.targets import Target
from infra.packaging.wheels import normalised, read_pins, read_requirements

ARM = Target("arm64", "3.13")
API = Path("api_services/http/requirements.txt")
HANDLERS = {spec.name: spec.handler for spec in (*QUEUES, *STANDALONE, *SCHEDULES)}


@pytest.fixture(scope="module")
def providers() -> dict[str, set[str]]:
    return {top: {normalised(name) for name in names} for top, names in packages_distributions().items()}


@pytest.mark.parametrize("handler", HANDLERS.values(), ids=HANDLERS)
def test_a_function_names_every_package_it_can_reach(handler: str, providers: dict[str, set[str]]) -> None:
    planned = plan(handler, ARM, None)
    assert undeclared(planned.reached, planned.requirements, providers) == []


def test_the_api_names_every_package_it_can_reach(providers: dict[str, set[str]]) -> None:
    reached = reach(["api_services.http.__main__"], REPOSITORY)
    assert "fastapi" in reached.third_party
    assert undeclared(reached, read_requirements(REPOSITORY / API), providers) == []
    assert set(reached.services) <= BOTOCORE_SERVICES


@pytest.mark.parametrize(
    "path",
    [*sorted(path.relative_to(REPOSITORY) for path in REPOSITORY.glob("functions/*/requirements.txt")), API],
    ids=str,
)
def test_what_is_named_is_pinned(path: Path) -> None:
    pins = read_pins(REPOSITORY / "requirements.txt")
    assert [name for name in read_requirements(REPOSITORY / path) if normalised(name) not in pins] == []


def test_a_change_of_reports_is_no_change_of_settlement() -> None:
    modules = plan(QUEUES[0].handler, ARM, None).reached.modules
    assert "api_services.credits.service" in modules or "api_services.credits.settlement" in modules
    assert not [name for name in modules if name.startswith(("api_services.documents.index", "api_services.http"))]
    assert {name.partition(".")[0] for name in modules} == set(FIRST_PARTY)
    assert not set(FIRST_PARTY) & set(sys.stdlib_module_names)
