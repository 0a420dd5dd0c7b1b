"""The local stage: everything of a deployed stage as processes of this machine, brought up and down as one.

    stage = LocalStage()
    running = stage.up()        # again: changes nothing
    running.api_url, running.outputs["interviewCompletedQueue"], running.keys["bot"]
    stage.down()                # no process and no port is left; data, keys and logs are kept

The emulator keeps AWS in memory, so Pulumi's state of the stage lives exactly as long as the emulator's process. Both
begin anew when the emulator is gone or a deployment was cut off half-way: recovery never depends on what was half done.
"""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from api_services.errors import ConfigurationError
from api_services.stages import LOCAL_STAGE
from local import services
from local.emulator import answers as emulator_answers
from local.emulator import emulator_command, emulator_settings
from local.mongod import Mongod, await_mongod, is_writable, mongod_command, mongod_uri
from local.pulumi_stage import StagePulumi, clean_environ
from local.run_state import RunState, ServiceRecord, exclusive, read_run_state, write_run_state
from local.running import RunningStage
from local.secret_values import bearer_keys, write_secret_values
from local.services import API, API_SERVICE, EMULATOR, LLM, LLM_SERVICE, MONGOD, HttpService
from toolchain import processes
from toolchain.paths import ROOT, StagePaths
from toolchain.progress import Progress
from toolchain.pulumi_cli import find_or_obtain
from toolchain.pulumi_output import explain_failure
from toolchain.stage_files import read_stage_file

__all__ = ["LocalStage", "Progress", "RunningStage"]

_PULUMI_LOG = "pulumi-up"
_POLL_SECONDS = 0.05
_INTERRUPT_GRACE_SECONDS = 10.0


class LocalStage:
    """One local stage; another `state_dir` is another stage, which may run beside it.

    By default it is the folder that `SOPHIA_STATE_DIR` names, else the checkout's `.sophia/`.
    """

    def __init__(
        self, state_dir: Path | None = None, *, root: Path = ROOT, environ: Mapping[str, str] | None = None
    ) -> None:
        self._environ = os.environ if environ is None else environ
        stated = self._environ.get("SOPHIA_STATE_DIR")
        self.paths = StagePaths((state_dir or (Path(stated) if stated else root / ".sophia")).resolve(), root)

    def up(self, progress: Progress | None = None) -> RunningStage:
        """Start what does not run, deploy, write the secrets' values; what runs and is current is left alone.

        On an error or Ctrl-C, what this call started is stopped again. Raises `ConfigurationError`.
        """
        said = progress or Progress()
        with exclusive(self.paths, said.note):
            state = read_run_state(self.paths)
            with said.step("Pulumi CLI"):
                cli = find_or_obtain(self._environ, said.note)
            pulumi = StagePulumi(self.paths, cli, self._environ)
            self._stop_leftovers(state)
            attempt = _Attempt(self, state, pulumi, said)
            try:
                return attempt.run()
            except BaseException:
                attempt.undo()
                raise

    def down(self, progress: Progress | None = None) -> int:
        """Stop every process of the stage, recorded or not, and forget the deployment; gives how many it stopped."""
        said = progress or Progress()
        with exclusive(self.paths, said.note), said.step("stop"):
            try:
                state = read_run_state(self.paths)
            except ConfigurationError:
                self.paths.run_file.replace(self.paths.run_file.with_suffix(f".damaged-{time.time_ns()}.json"))
                state = RunState()
            recorded = [record.process for record in state.services.values() if processes.is_running(record.process)]
            found = list(dict.fromkeys([*recorded, *processes.marked_with(self.paths.state_dir)]))
            processes.stop(found)
            # The emulator may have started a function's process while it was being stopped.
            processes.stop(processes.marked_with(self.paths.state_dir))
            shutil.rmtree(self.paths.backend_dir, ignore_errors=True)
            shutil.rmtree(self.paths.emulator_dir, ignore_errors=True)
            self.paths.config_file.unlink(missing_ok=True)
            write_run_state(self.paths, RunState(ports=state.ports))
            return len(found)

    def delete_data(self) -> None:
        """Remove database, index, keys and logs of a stage that is down."""
        with exclusive(self.paths, Progress().note):
            if any(processes.is_running(record.process) for record in read_run_state(self.paths).services.values()):
                raise ConfigurationError("the local stage runs; run `./sophia down` first.", code="stage_up")
            for folder in (self.paths.mongo_dir, self.paths.index_dir, self.paths.log_dir):
                shutil.rmtree(folder, ignore_errors=True)
            self.paths.keys_file.unlink(missing_ok=True)

    def running(self) -> RunningStage:
        """The stage as it runs; `ConfigurationError` when it is not up."""
        state = read_run_state(self.paths)
        missing = [name for name in services.SERVICES if not self.is_running(state, name)]
        if missing or state.deployed_to != state.services[EMULATOR]:
            what = f"{', '.join(missing)} not running" if missing else "its deployment is not complete"
            raise ConfigurationError(f"the local stage is not up ({what}); run `./sophia up`.", code="stage_not_up")
        return self._running(state)

    def is_running(self, state: RunState, name: str) -> bool:
        """Whether the recorded process of that service still runs."""
        record = state.services.get(name)
        return record is not None and processes.is_running(record.process)

    def environ(self) -> dict[str, str]:
        """Base environment of the stage's processes: nothing of the user's accounts, and the stage's marker."""
        return {**clean_environ(self._environ), processes.MARKER: str(self.paths.state_dir)}

    def chosen_port(self, name: str, state: RunState) -> int:
        taken = [record.port for other, record in state.services.items() if other != name]
        return services.choose_port(name, self._environ, state.ports.get(name), taken)

    @property
    def openai_api_key(self) -> str | None:
        """The user's own key; with it the real API is used."""
        return self._environ.get("OPENAI_API_KEY") or None

    def _running(self, state: RunState) -> RunningStage:
        return RunningStage(
            ports={name: record.port for name, record in state.services.items()},
            outputs=dict(state.outputs),
            keys=bearer_keys(self.paths),
            log_dir=self.paths.log_dir,
            index_dir=self.paths.index_dir,
            uses_real_openai=self.openai_api_key is not None,
        )

    def _stop_leftovers(self, state: RunState) -> None:
        """End what an `up` that was killed left behind: marked processes that belong to no recorded service."""
        recorded = {record.pid for record in state.services.values() if processes.is_running(record.process)}
        leftovers: list[processes.ProcessId] = []
        for process in processes.marked_with(self.paths.state_dir):
            with suppress(ProcessLookupError):
                if os.getsid(process.pid) not in recorded:
                    leftovers.append(process)
        processes.stop(leftovers)


class _Attempt:
    """One `up` under the stage's lock, with what it started so far."""

    def __init__(self, stage: LocalStage, state: RunState, pulumi: StagePulumi, progress: Progress) -> None:
        self._stage = stage
        self._paths = stage.paths
        self._state = state
        self._pulumi = pulumi
        self._progress = progress
        self._started: dict[str, subprocess.Popen[bytes]] = {}
        self._deployment: subprocess.Popen[bytes] | None = None

    def run(self) -> RunningStage:
        # Started first and waited for later: each comes up while the others do, and mongod while Pulumi deploys.
        self._ensure_mongod()
        self._ensure_emulator()
        self._ensure_http(LLM_SERVICE, {})
        record = self._state.services[EMULATOR]
        endpoint_url = f"http://{processes.LOOPBACK}:{record.port}"
        environ = {**self._stage.environ(), **self._pulumi.deploy_environ(endpoint_url)}
        self._prepare_deployment(record, environ)
        self._await(EMULATOR, emulator_answers)
        started = time.monotonic()
        self._deployment = self._start_deployment(environ)
        with self._progress.step("mongod, LLM server"):
            self._await_mongod()
            self._await(LLM, services.answers)
        self._await_deployment(self._deployment, record, environ)
        self._progress.took("pulumi up", time.monotonic() - started)
        with self._progress.step("secrets"):
            arns = write_secret_values(self._paths, endpoint_url, self._secret_values())
        with self._progress.step("API"):
            self._ensure_http(API_SERVICE, self._api_settings(endpoint_url, arns))
            self._await(API, services.answers)
        return self._stage.running()

    def undo(self) -> None:
        """Stop what this attempt started; what ran before goes on."""
        if self._deployment is not None and self._deployment.poll() is None:
            # The engine ends its program and plugins itself when it is interrupted once.
            self._deployment.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                self._deployment.wait(_INTERRUPT_GRACE_SECONDS)
            processes.stop_child(self._deployment)
        for name, process in reversed(self._started.items()):
            processes.stop_child(process)
            self._state.services.pop(name, None)
        write_run_state(self._paths, self._state)

    def _ensure_mongod(self) -> None:
        self._paths.mongo_dir.mkdir(exist_ok=True)

        def command(port: int) -> list[str]:
            return mongod_command(self._paths.mongo_dir, port)

        self._ensure(MONGOD, command, lambda _: {}, is_writable)

    def _ensure_emulator(self) -> None:
        record = self._state.services.get(EMULATOR)
        if record is not None and self._state.deployed_to != record:
            self._stop(EMULATOR)

        def settings(port: int) -> dict[str, str]:
            return emulator_settings(self._paths.emulator_dir, port)

        self._ensure(EMULATOR, lambda _: emulator_command(), settings, emulator_answers, cwd=self._paths.emulator_dir)

    def _ensure_http(self, service: HttpService, settings: Mapping[str, str]) -> None:
        self._ensure(
            service.name, service.command, lambda _: settings, services.answers, cwd=ROOT, source=service.source
        )

    def _ensure(
        self,
        name: str,
        command: Callable[[int], list[str]],
        settings: Callable[[int], Mapping[str, str]],
        healthy: Callable[[int], bool],
        *,
        cwd: Path | None = None,
        source: Path | None = None,
    ) -> None:
        """Keep the service when it runs, answers and would be started with the same settings; else start it."""
        record = self._state.services.get(name)
        if record is not None and processes.is_running(record.process):
            current = services.fingerprint(command(record.port), settings(record.port), source)
            if current == record.fingerprint and healthy(record.port):
                return
            self._stop(name)
        port = self._stage.chosen_port(name, self._state)
        if cwd is not None:
            cwd.mkdir(parents=True, exist_ok=True)
        environ = {**self._stage.environ(), **settings(port)}
        process = processes.start(command(port), log_path=self._paths.log_path(name), environ=environ, cwd=cwd)
        self._started[name] = process
        identity = processes.identify(process.pid)
        if identity is not None:
            mark = services.fingerprint(command(port), settings(port), source)
            self._state.services[name] = ServiceRecord(
                pid=identity.pid, started=identity.started, port=port, fingerprint=mark
            )
        self._state.ports[name] = port
        write_run_state(self._paths, self._state)

    def _stop(self, name: str) -> None:
        record = self._state.services.pop(name)
        session = [
            process
            for process in processes.marked_with(self._paths.state_dir)
            if _session_of(process.pid) == record.pid
        ]
        processes.stop([record.process, *session])
        write_run_state(self._paths, self._state)

    def _await(self, name: str, ready: Callable[[int], bool]) -> None:
        process = self._started.get(name)
        if process is not None:
            port = self._state.ports[name]
            processes.wait_until_ready(
                name,
                process,
                lambda: ready(port),
                log_path=self._paths.log_path(name),
                timeout_seconds=services.START_TIMEOUT_SECONDS,
            )

    def _await_mongod(self) -> None:
        process = self._started.get(MONGOD)
        if process is not None:
            port = self._state.ports[MONGOD]
            await_mongod(Mongod(mongod_uri(port), port, process, throwaway=False), self._paths.log_path(MONGOD))

    def _prepare_deployment(self, emulator: ServiceRecord, environ: Mapping[str, str]) -> None:
        """Give the program its configuration, and a new emulator an empty stack."""
        kept = self._state.deployed_to == emulator and self._paths.config_file.exists()
        if kept:
            salt = str(read_stage_file(self._paths.config_file)["encryptionsalt"])
        else:
            salt = self._pulumi.init_stack(LOCAL_STAGE, self._paths.backend_dir, environ)
        self._paths.index_dir.mkdir(exist_ok=True)
        self._pulumi.write_config(LOCAL_STAGE, self._paths.config_file, salt, self._config_values())
        self._state.deployed_to = None
        write_run_state(self._paths, self._state)

    def _config_values(self) -> dict[str, str]:
        values = {"sophia:indexUrl": (self._paths.index_dir / "documents.db").as_uri().replace("file://", "file:")}
        if self._stage.openai_api_key is None:
            values["sophia:openaiBaseUrl"] = f"http://{processes.LOOPBACK}:{self._state.ports[LLM]}/v1"
        return values

    def _start_deployment(self, environ: Mapping[str, str]) -> "subprocess.Popen[bytes]":
        log_path = self._paths.log_path(_PULUMI_LOG)
        log_path.unlink(missing_ok=True)
        command = self._pulumi.command(
            "up", "--stack", LOCAL_STAGE, "--config-file", str(self._paths.config_file), "--yes", "--skip-preview"
        )
        command += ["--non-interactive", "--suppress-progress", "--color", "never"]
        return processes.start(command, log_path=log_path, environ=environ, cwd=self._paths.root)

    def _await_deployment(
        self, deployment: "subprocess.Popen[bytes]", emulator: ServiceRecord, environ: Mapping[str, str]
    ) -> None:
        log_path = self._paths.log_path(_PULUMI_LOG)
        started = time.monotonic()
        while deployment.poll() is None:
            self._progress.note(f"pulumi up: {time.monotonic() - started:.0f} s, {_last_line(log_path)}")
            with suppress(subprocess.TimeoutExpired):
                deployment.wait(_POLL_SECONDS)
        # Failed or not, the engine ended by itself, so its state tells what the emulator holds.
        self._state.deployed_to = emulator
        if deployment.returncode != 0:
            reason = explain_failure(log_path.read_text(errors="replace"))
            raise ConfigurationError(
                f"`pulumi up` of the local stage failed: {reason} The whole output is in {log_path}.",
                code="deployment_failed",
            )
        self._state.outputs = self._pulumi.outputs(LOCAL_STAGE, environ)
        write_run_state(self._paths, self._state)

    def _secret_values(self) -> dict[str, str]:
        return {
            "mongo-uri": mongod_uri(self._state.ports[MONGOD]),
            "openai-api-key": self._stage.openai_api_key or "local",
        }

    def _api_settings(self, endpoint_url: str, secret_arns: Mapping[str, str]) -> dict[str, str]:
        config = read_stage_file(self._paths.config_file)["config"]
        return services.api_environ(endpoint_url, config, self._state.outputs, secret_arns)


def _session_of(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return None


def _last_line(log_path: Path) -> str:
    lines = log_path.read_text(errors="replace").split("\n") if log_path.exists() else []
    return next((line.strip()[:100] for line in reversed(lines) if line.strip()), "starting")
