"""A stack of the real engine per test, over the emulator."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from local.emulator import Emulator, start_emulator
from tests.integration.local.aws.engine import Stack
from toolchain.pulumi_cli import PulumiCli, find_or_obtain

MakeStack = Callable[[str], Stack]


@pytest.fixture(scope="session")
def pulumi_cli() -> PulumiCli:
    return find_or_obtain(os.environ, lambda _line: None)


@pytest.fixture(scope="session")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    """One for these tests alone, which look at all that is in it."""
    home = tmp_path_factory.mktemp("emulator-of-stacks")
    started = start_emulator(home / "work", home / "emulator.log", dies_with_parent=True)
    yield started
    started.stop()


@pytest.fixture
def make_stack(tmp_path: Path, pulumi_cli: PulumiCli, emulator: Emulator) -> Iterator[MakeStack]:
    """Makes a stack of a program; what is left of it in the emulator goes with the test."""
    made: list[Stack] = []

    def make(program: str) -> Stack:
        stack = Stack(tmp_path / f"stack-{len(made)}", pulumi_cli, program, emulator.endpoint_url)
        made.append(stack)
        return stack

    yield make
    for stack in made:
        stack.run("destroy", "--yes", "--skip-preview")
