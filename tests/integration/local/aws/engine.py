"""The real Pulumi engine over a program of the tests, with a backend of its own."""

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from local.pulumi_stage import StagePulumi
from toolchain.paths import StagePaths
from toolchain.pulumi_cli import PulumiCli

PROGRAMS = Path(__file__).parent / "programs"


@dataclass(frozen=True, slots=True)
class Done:
    """One finished command of the CLI."""

    exit_code: int
    output: str


class Stack:
    """One stack `local` of one program; `config` is what its program reads."""

    def __init__(self, folder: Path, cli: PulumiCli, program: str, endpoint_url: str) -> None:
        folder.mkdir()
        self._cli = cli
        self._program = PROGRAMS / program
        self._pulumi = StagePulumi(StagePaths(folder, root=self._program), cli, os.environ)
        self._folder = folder
        self._config_file = folder / "Pulumi.local.yaml"
        self._backends = 0
        self._salt = ""
        self.environ = self._pulumi.environ(endpoint_url)
        self.config: dict[str, Any] = {"aws:region": "eu-west-1", "aws:defaultTags": {"tags": {"stage": "local"}}}
        self.forget_state()

    def forget_state(self) -> None:
        """An empty backend, as if the state file had been lost."""
        self._backends += 1
        backend = self._folder / f"backend-{self._backends}"
        self.environ["PULUMI_BACKEND_URL"] = backend.as_uri()
        self._salt = self._pulumi.init_stack("local", backend, self.environ)

    def run(self, *arguments: str, environ: Mapping[str, str] | None = None) -> Done:
        """Run one command; its output holds both streams."""
        self._config_file.write_text(yaml.safe_dump({"encryptionsalt": self._salt, "config": self.config}))
        configured = () if arguments[0] == "stack" else ("--config-file", str(self._config_file))
        done = subprocess.run(  # noqa: S603
            [str(self._cli.path), *arguments, "--stack", "local", "--non-interactive", *configured],
            cwd=self._program,
            env={**self.environ, **(environ or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=180,
            check=False,
        )
        return Done(done.returncode, done.stdout)

    def succeeds(self, *arguments: str) -> str:
        """The output of a command that must succeed."""
        done = self.run(*arguments)
        assert done.exit_code == 0, done.output
        return done.output

    def outputs(self) -> dict[str, Any]:
        """The stack's outputs."""
        return json.loads(self.succeeds("stack", "output", "--json"))

    def resources(self) -> list[dict[str, Any]]:
        """The resources in the state."""
        return json.loads(self.succeeds("stack", "export"))["deployment"].get("resources", [])
