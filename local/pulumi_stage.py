"""Pulumi for the local stage and for previews without an account: backend, passphrase and plugin of its own."""

import hashlib
import json
import os
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import yaml

from api_services.errors import ConfigurationError
from local.emulator import CREDENTIALS, client_environ
from local.run_state import write_private
from toolchain.paths import StagePaths
from toolchain.pulumi_cli import PulumiCli, environment_with
from toolchain.pulumi_output import one_line
from toolchain.stage_files import read_stage_file

PLUGIN = "pulumi-resource-aws"
PLUGIN_FOLDER = Path(__file__).parent / "aws" / "bin"
OFFLINE_KEY = "SOPHIA_AWS_OFFLINE"
"""Set for the plugin when a preview must reach nothing: every value that AWS would give is unknown."""

_SALT_KEY = "encryptionsalt"
_FOREIGN_PREFIXES = ("AWS_", "PULUMI_", "OPENAI_", "MONGO_", "LANGFUSE_", "LIBSQL_", "TURSO_", "PYTHON")
_LOOPBACK_HOSTS = "127.0.0.1,localhost"


def clean_environ(environ: Mapping[str, str]) -> dict[str, str]:
    """`environ` without what could lead a process of the stage to the user's own accounts, services or Python path."""
    kept = {name: value for name, value in environ.items() if not name.upper().startswith(_FOREIGN_PREFIXES)}
    return {**kept, "NO_PROXY": _LOOPBACK_HOSTS, "no_proxy": _LOOPBACK_HOSTS}


class StagePulumi:
    """Runs the Pulumi CLI with a file backend and a passphrase below one state folder."""

    def __init__(self, paths: StagePaths, cli: PulumiCli, environ: Mapping[str, str]) -> None:
        self._paths = paths
        self._cli = cli
        self._environ = environ

    def environ(self, endpoint_url: str) -> dict[str, str]:
        """Environment of the CLI for stage `local`: the emulator is all of AWS it can see."""
        return {**self._base_environ(self._paths.backend_dir), **client_environ(endpoint_url)}

    def deploy_environ(self, endpoint_url: str) -> dict[str, str]:
        """Environment of the deployment that `up` makes: a third of the time, its state saved only at the end.

        What a kill loses is the state of an emulator that the next `up` replaces anyway.
        """
        return {
            **self.environ(endpoint_url),
            "PULUMI_EXPERIMENTAL": "true",
            "PULUMI_SKIP_CHECKPOINTS": "true",
            "PULUMI_DIY_BACKEND_DISABLE_CHECKPOINT_BACKUPS": "true",
        }

    def offline_environ(self, backend_dir: Path) -> dict[str, str]:
        """Environment of a preview of any stage that reaches no account: an ephemeral backend and the local plugin."""
        return {**self._base_environ(backend_dir), **CREDENTIALS, OFFLINE_KEY: "1"}

    def _base_environ(self, backend_dir: Path) -> dict[str, str]:
        _check_plugin()
        environ = environment_with(self._cli, clean_environ(self._environ))
        return {
            **environ,
            "PATH": os.pathsep.join([str(PLUGIN_FOLDER), environ["PATH"]]),
            "PULUMI_BACKEND_URL": backend_dir.resolve().as_uri(),
            "PULUMI_HOME": str(self._paths.pulumi_home),
            "PULUMI_CONFIG_PASSPHRASE_FILE": str(self._passphrase_file()),
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        }

    def _passphrase_file(self) -> Path:
        path = self._paths.passphrase_file
        if not path.exists():
            write_private(path, secrets.token_urlsafe(32))
        return path

    def command(self, *arguments: str) -> list[str]:
        return [str(self._cli.path), *arguments]

    def init_stack(self, stage: str, backend_dir: Path, environ: Mapping[str, str]) -> str:
        """A new empty stack in an empty backend; gives the salt that its configuration file must carry.

        `stack init` writes the salt beside `Pulumi.yaml`, so it runs on a copy: tracked files never change.
        """
        shutil.rmtree(backend_dir, ignore_errors=True)
        backend_dir.mkdir(parents=True)
        project = backend_dir / "project"
        project.mkdir()
        shutil.copy(self._paths.root / "Pulumi.yaml", project)
        done = subprocess.run(  # noqa: S603
            self.command("stack", "init", stage, "--non-interactive", "--secrets-provider", "passphrase"),
            cwd=project,
            env=dict(environ),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise ConfigurationError(
                f"Pulumi could not make its state in {backend_dir}: {one_line(done.stderr)}; run `./sophia down`, then"
                " `./sophia up`.",
                code="pulumi_state",
            )
        salt = read_stage_file(project / f"Pulumi.{stage}.yaml")[_SALT_KEY]
        shutil.rmtree(project)
        return str(salt)

    def ephemeral_stack(self, stage: str, backend_dir: Path, environ: Mapping[str, str]) -> str:
        """As `init_stack`, by copying the empty stack of an earlier call: making one takes the CLI half a second."""
        basis = f"{self._cli.version}\0{self._passphrase_file().read_text()}"
        kept = self._paths.state_dir / "empty-stacks" / f"{stage}-{hashlib.sha256(basis.encode()).hexdigest()[:16]}"
        salt_file = kept / "salt"
        if not salt_file.is_file():
            salt = self.init_stack(stage, backend_dir, environ)
            kept.parent.mkdir(parents=True, exist_ok=True)
            part = Path(tempfile.mkdtemp(prefix="part-", dir=kept.parent))
            shutil.copytree(backend_dir, part / "backend")
            write_private(part / "salt", salt)
            try:
                part.rename(kept)
            except OSError:  # another preview was first; its copy is as good
                shutil.rmtree(part)
            return salt
        shutil.copytree(kept / "backend", backend_dir)
        return salt_file.read_text()

    def write_config(self, stage: str, target: Path, salt: str, values: Mapping[str, str]) -> None:
        """The stage's own configuration with the stack's salt and `values`, as the file `target`.

        A secret value of an AWS stage is encrypted with a key that is not here: it becomes a placeholder.
        """
        content = read_stage_file(self._paths.root / f"Pulumi.{stage}.yaml")
        config = {key: _plain(value) for key, value in content.get("config", {}).items()}
        text = yaml.safe_dump({_SALT_KEY: salt, "config": {**config, **values}}, sort_keys=False)
        write_private(target, text)

    def outputs(self, stage: str, environ: Mapping[str, str]) -> dict[str, str]:
        """The stack's outputs; values that are not text come as JSON."""
        done = subprocess.run(  # noqa: S603
            self.command("stack", "output", "--json", "--stack", stage, "--non-interactive"),
            cwd=self._paths.root,
            env=dict(environ),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise ConfigurationError(f"Pulumi gave no outputs: {one_line(done.stderr)}", code="pulumi_state")
        found: dict[str, Any] = json.loads(done.stdout)
        return {name: value if isinstance(value, str) else json.dumps(value) for name, value in found.items()}


def _check_plugin() -> None:
    if not os.access(PLUGIN_FOLDER / PLUGIN, os.X_OK):
        raise ConfigurationError(
            f"{PLUGIN_FOLDER / PLUGIN} is missing or not executable; restore it from the repository.",
            code="plugin_missing",
        )


def _plain(value: object) -> object:
    is_encrypted = isinstance(value, dict) and set(cast("dict[str, Any]", value)) == {"secure"}
    return "placeholder" if is_encrypted else cast("object", value)
