"""A local stage of the tests' own, run through `./sophia` as a person would, beside whatever else runs here."""

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from local.stage import LocalStage
from toolchain.paths import ROOT


@dataclass(frozen=True, slots=True)
class Sophia:
    """`./sophia` with a state folder of its own and without the user's OpenAI key."""

    state_dir: Path

    @property
    def environ(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("OPENAI_")}
        return {**kept, "SOPHIA_STATE_DIR": str(self.state_dir)}

    @property
    def stage(self) -> LocalStage:
        return LocalStage(environ=self.environ)

    def __call__(self, *arguments: str, environ: Mapping[str, str] | None = None) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(  # noqa: S603
            [str(ROOT / "sophia"), *arguments],
            env={**self.environ, **(environ or {})},
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(  # noqa: S603
            [str(ROOT / "sophia"), *arguments],
            env=self.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def succeeds(self, *arguments: str) -> str:
        """Standard output of a command that must succeed."""
        done = self(*arguments)
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
        return done.stdout

    def status(self) -> dict[str, Any]:
        return json.loads(self.succeeds("status", "--json"))


@pytest.fixture(scope="package")
def sophia(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sophia]:
    """A stage that is brought up by whoever needs it first, and down after the last test."""
    command = Sophia(tmp_path_factory.mktemp("stage"))
    yield command
    command.succeeds("down")
