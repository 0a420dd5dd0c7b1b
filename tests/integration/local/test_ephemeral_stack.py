"""An offline preview starts from an empty stack that is made once."""

import os
import subprocess
from pathlib import Path

import pytest

from local.pulumi_stage import StagePulumi
from local.run_state import write_private
from toolchain.paths import StagePaths
from toolchain.progress import Progress
from toolchain.pulumi_cli import find_or_obtain

pytestmark = pytest.mark.integration


def stacks(pulumi: StagePulumi, backend: Path) -> str:
    environ = pulumi.offline_environ(backend)
    listed = subprocess.run(  # noqa: S603
        pulumi.command("stack", "ls", "--json"), env=environ, capture_output=True, text=True, check=True
    )
    return listed.stdout


def test_the_second_stack_is_a_copy_and_a_new_passphrase_makes_a_new_one(tmp_path: Path) -> None:
    paths = StagePaths(tmp_path / "state")
    paths.state_dir.mkdir()
    pulumi = StagePulumi(paths, find_or_obtain(os.environ, Progress().note), os.environ)

    def make(number: int) -> str:
        backend = tmp_path / f"backend-{number}"
        salt = pulumi.ephemeral_stack("dev", backend, pulumi.offline_environ(backend))
        assert '"name": "dev"' in stacks(pulumi, backend)
        return salt

    first, second = make(1), make(2)
    assert first == second, "a new stack has a salt of its own"
    write_private(paths.passphrase_file, "another passphrase")
    assert make(3) != first
