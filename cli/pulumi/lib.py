"""What a `pulumi` command line of the user means here, and the environment it runs in."""

import shlex
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from api_services.errors import InvalidInputError
from api_services.stages import LOCAL_STAGE
from local.pulumi_stage import StagePulumi
from local.stage import LocalStage
from toolchain.paths import StagePaths
from toolchain.processes import LOOPBACK
from toolchain.pulumi_cli import PulumiCli, environment_with
from toolchain.stage_files import check_stage

OFFLINE = "--offline"
_WITH_CONFIG_FILE = frozenset(
    {"up", "update", "preview", "pre", "refresh", "destroy", "down", "watch", "import", "config"}
)


@dataclass(frozen=True, slots=True)
class PulumiRun:
    """One run of the CLI."""

    command: Sequence[str]
    environ: Mapping[str, str]
    cwd: Path


def stage_of(arguments: Sequence[str]) -> str | None:
    """The stage a command line names with `-s`, `--stack` or `--stack=`; without its organization."""
    for position, argument in enumerate(arguments):
        value = None
        if argument in ("-s", "--stack") and position + 1 < len(arguments):
            value = arguments[position + 1]
        elif argument.startswith("--stack="):
            value = argument.removeprefix("--stack=")
        elif argument.startswith("-s") and not argument.startswith("--") and len(argument) > 2:
            value = argument[2:].removeprefix("=")
        if value is not None:
            return value.rsplit("/", 1)[-1]
    return None


def plan_run(
    arguments: Sequence[str], stage: LocalStage, cli: PulumiCli, environ: Mapping[str, str], *, scratch: Path
) -> PulumiRun:
    """The run of the CLI for the user's `arguments`.

    Stage `local` has its own backend and generated configuration; with `--offline` any stage is previewed against
    nothing, in `scratch`; every other command sees the user's own environment. Raises `InvalidInputError`,
    `ConfigurationError`.
    """
    name = stage_of(arguments)
    if name is not None and arguments[:2] != ["stack", "init"]:
        check_stage(stage.paths.root, name)
    rest = [argument for argument in arguments if argument != OFFLINE]
    pulumi = StagePulumi(stage.paths, cli, environ)
    if len(rest) < len(arguments):
        return _offline_run(rest, name, stage.paths, pulumi, scratch)
    if name == LOCAL_STAGE:
        running = stage.running()
        return PulumiRun(
            pulumi.command(*_with_config(rest, stage.paths.config_file)),
            pulumi.environ(running.endpoint_url),
            stage.paths.root,
        )
    return PulumiRun(pulumi.command(*rest), environment_with(cli, environ), stage.paths.root)


def _offline_run(
    arguments: Sequence[str], name: str | None, paths: StagePaths, pulumi: StagePulumi, scratch: Path
) -> PulumiRun:
    if not arguments or arguments[0] not in ("preview", "pre") or name is None:
        raise InvalidInputError(
            f"{OFFLINE} shows a stage's whole graph without an account: ./sophia pulumi preview -s STAGE {OFFLINE}",
            code="offline_preview_only",
        )
    backend, config = scratch / "backend", scratch / f"Pulumi.{name}.yaml"
    environ = pulumi.offline_environ(backend)
    if name == LOCAL_STAGE:  # the program wants the emulator's address; the plugin does not use it here
        environ["AWS_ENDPOINT_URL"] = f"http://{LOOPBACK}:9"
    pulumi.write_config(name, config, pulumi.ephemeral_stack(name, backend, environ), {})
    return PulumiRun(pulumi.command(*_with_config(arguments, config)), environ, paths.root)


def _with_config(arguments: Sequence[str], config_file: Path) -> list[str]:
    command = next((argument for argument in arguments if not argument.startswith("-")), "")
    if command not in _WITH_CONFIG_FILE or any(part.startswith("--config-file") for part in arguments):
        return list(arguments)
    return [*arguments, "--config-file", str(config_file)]


def shell_exports(cli: PulumiCli, environ: Mapping[str, str]) -> list[str]:
    """Lines for `eval` that make plain `pulumi` work: the CLI, a language host and `.venv/bin` first on PATH."""
    wanted = environment_with(cli, environ)
    changed = {key: value for key, value in wanted.items() if environ.get(key) != value}
    return [f"export {key}={shlex.quote(value)}" for key, value in sorted(changed.items())]


def scratch_folder(paths: StagePaths) -> "tempfile.TemporaryDirectory[str]":
    """A folder for an offline preview, removed after it."""
    paths.state_dir.mkdir(exist_ok=True)
    return tempfile.TemporaryDirectory(prefix="offline-", dir=paths.state_dir)
