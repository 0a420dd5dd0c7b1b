"""Each stage's program is run once for all tests that look at what it declares."""

from functools import cache

import pytest

from tests.infra.engine import Engine, run_program, stage_values

STAGES = ("local", "dev", "prod")


@cache
def _engine(stage: str) -> Engine:
    # The local stage takes the host's architecture and Python; tests say which.
    host = {"architecture": "x86_64", "pythonVersion": "3.11"} if stage == "local" else {}
    return run_program(stage, stage_values(stage, **host))


@pytest.fixture
def stages() -> dict[str, Engine]:
    """What the program of each stage declares."""
    return {stage: _engine(stage) for stage in STAGES}


@pytest.fixture(params=STAGES)
def engine(request: pytest.FixtureRequest) -> Engine:
    """What the program of one stage declares; every test runs for each stage."""
    return _engine(request.param)


@pytest.fixture
def dev() -> Engine:
    """What the program of the stage dev declares."""
    return _engine("dev")
