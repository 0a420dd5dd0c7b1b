"""The whole local stage through `./sophia`: deployed, working, changed by nothing, gone without a trace."""

import json
import os
import signal
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from api_services.queues import QUEUES
from local import clients
from local.run_state import read_run_state
from local.running import RunningStage
from local.services import API, EMULATOR, LLM, MONGOD, SERVICES
from tests.e2e.conftest import Sophia
from toolchain import processes

pytestmark = pytest.mark.e2e

_SPOKEN = "I split the monolith by team, moved the orders behind a queue, and measured the latency before and after. "


@pytest.fixture(scope="module")
def running(sophia: Sophia) -> RunningStage:
    sophia.succeeds("up")
    return sophia.stage.running()


def await_true(condition: Callable[[], bool], *, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def api(running: RunningStage, role: str) -> httpx.Client:
    return httpx.Client(
        base_url=running.api_url, headers={"Authorization": f"Bearer {running.keys[role]}"}, timeout=30, trust_env=False
    )


def test_an_interview_runs_from_the_bots_call_to_the_finished_report(running: RunningStage) -> None:
    organization, interview = f"org-{uuid.uuid4().hex[:12]}", f"int-{uuid.uuid4().hex[:12]}"
    with api(running, "admin") as admin, api(running, "bot") as bot:
        credits_url = f"/organizations/{organization}/credits"
        granted = admin.post(f"{credits_url}/lots", json={"amount": 5}, headers={"Idempotency-Key": organization})
        assert granted.status_code == 201, granted.text
        created = bot.post(
            "/interviews", json={"organizationId": organization, "creditsRequired": 2, "interviewId": interview}
        )
        assert created.status_code == 201, created.text
        turns = [{"speaker": speaker, "text": _SPOKEN * 3} for speaker in ("interviewer", "candidate")] * 10
        recorded = bot.put(f"/interviews/{interview}/transcript", json={"turns": turns})
        assert recorded.status_code == 200, recorded.text
        assert bot.post(f"/interviews/{interview}/complete").status_code == 200

        report: dict[str, Any] = {}

        def is_reported() -> bool:
            nonlocal report
            answer = bot.get(f"/interviews/{interview}/report")
            report = answer.json()
            return answer.status_code == 200 and report["status"] in ("COMPLETED", "FAILED")

        assert await_true(is_reported, seconds=90), report
        assert report["status"] == "COMPLETED", report
        settled = bot.get(f"/interviews/{interview}").json()
        assert settled["settledAt"]
        assert settled["credits"]["consumed"] == 2
        assert admin.get(credits_url).json()["available"] == 3


def test_all_outputs_are_there_and_one_alone_is_a_bare_url(running: RunningStage, sophia: Sophia) -> None:
    outputs = json.loads(sophia.succeeds("pulumi", "stack", "output", "--json", "-s", "local"))
    for spec in QUEUES:
        assert outputs[spec.output].startswith(running.endpoint_url)
        assert outputs[spec.dlq_output].startswith(running.endpoint_url)
    alone = sophia.succeeds("pulumi", "stack", "output", "interviewCompletedQueue", "-s", "local")
    assert alone == outputs["interviewCompletedQueue"] + "\n"


def test_nothing_is_left_to_change_after_up(running: RunningStage, sophia: Sophia) -> None:
    preview = sophia("pulumi", "preview", "-s", "local", "--expect-no-changes", "--non-interactive")
    assert preview.returncode == 0, preview.stdout[-3000:]


def test_a_second_up_changes_nothing(running: RunningStage, sophia: Sophia) -> None:
    before = sophia.stage.paths.run_file.read_bytes()
    sophia.succeeds("up")
    assert sophia.stage.paths.run_file.read_bytes() == before
    assert "unchanged" in sophia.stage.paths.log_path("pulumi-up").read_text()


def test_no_server_listens_beyond_loopback(running: RunningStage, sophia: Sophia) -> None:
    listening = [
        row[1]
        for family in ("tcp", "tcp6")
        for row in map(str.split, Path(f"/proc/net/{family}").read_text().splitlines()[1:])
        if row[3] == "0A" and int(row[1].rpartition(":")[2], 16) in running.ports.values()
    ]
    assert len(listening) == len(running.ports)
    assert all(address.startswith("0100007F:") for address in listening), listening


def test_the_status_tells_processes_queues_and_outputs(running: RunningStage, sophia: Sophia) -> None:
    status = sophia.status()
    assert status["up"] is True
    assert {service["name"] for service in status["services"] if service["running"]} == set(SERVICES)
    assert {queue["name"] for queue in status["queues"]} == {spec.name for spec in QUEUES}
    assert status["outputs"]["interviewCompletedQueue"] == running.outputs["interviewCompletedQueue"]


def test_the_logs_of_a_function_are_shown(running: RunningStage, sophia: Sophia) -> None:
    queue_url = running.outputs["interviewCompletedQueue"]
    clients.sqs(running.endpoint_url).send_message(QueueUrl=queue_url, MessageBody="not JSON")
    assert await_true(
        lambda: "body_not_json" in sophia.succeeds("logs", "interview-completed", "-n", "100"), seconds=60
    )
    unknown = sophia("logs", "nobody")
    assert unknown.returncode == 2
    assert "no log 'nobody'; there are api, " in unknown.stderr
    assert "Traceback" not in unknown.stderr


@pytest.mark.parametrize("names", [(API,), (LLM, MONGOD)], ids=["the API", "what the API and functions need"])
def test_killed_services_are_started_again_beside_those_that_run(
    running: RunningStage, sophia: Sophia, names: tuple[str, ...]
) -> None:
    before = read_run_state(sophia.stage.paths).services
    for name in names:
        os.kill(before[name].pid, signal.SIGKILL)
    assert await_true(lambda: not any(processes.is_running(before[name].process) for name in names), seconds=10)
    assert sophia.status()["up"] is False
    sophia.succeeds("up")
    after = read_run_state(sophia.stage.paths).services
    assert {key for key in SERVICES if after[key].pid != before[key].pid} == set(names)


def test_the_stage_recovers_from_a_killed_emulator(running: RunningStage, sophia: Sophia) -> None:
    os.kill(read_run_state(sophia.stage.paths).services[EMULATOR].pid, signal.SIGKILL)
    sophia.succeeds("up")
    preview = sophia("pulumi", "preview", "-s", "local", "--expect-no-changes", "--non-interactive")
    assert preview.returncode == 0, preview.stdout[-3000:]
    queue = sophia.status()["queues"][0]
    assert queue["waiting"] == queue["dead_letters"] == 0


@pytest.mark.parametrize("stage", ["dev", "prod"])
def test_an_aws_stage_is_previewed_whole_without_an_account(sophia: Sophia, stage: str) -> None:
    preview = sophia("pulumi", "preview", "-s", stage, "--offline", "--non-interactive")
    assert preview.returncode == 0, preview.stdout[-3000:]
    for spec in QUEUES:
        assert spec.output in preview.stdout
        assert f"{spec.name}-queue " in preview.stdout
        assert f"{spec.name}-dlq " in preview.stdout


def test_down_leaves_no_process_and_no_port(running: RunningStage, sophia: Sophia) -> None:
    ports = read_run_state(sophia.stage.paths).ports
    sophia.succeeds("down")
    assert processes.marked_with(sophia.stage.paths.state_dir) == []
    assert [name for name, port in ports.items() if not processes.port_is_free(port)] == []
    assert sophia.status()["up"] is False
    assert sophia.succeeds("down") == "nothing ran\n"


def test_down_finds_the_processes_of_an_up_that_was_killed(sophia: Sophia) -> None:
    kill_while_deploying(sophia, signal.SIGKILL)
    sophia.succeeds("down")
    assert processes.marked_with(sophia.stage.paths.state_dir) == []


def test_up_recovers_from_an_up_that_was_killed(sophia: Sophia) -> None:
    kill_while_deploying(sophia, signal.SIGKILL)
    sophia.succeeds("up")
    preview = sophia("pulumi", "preview", "-s", "local", "--expect-no-changes", "--non-interactive")
    assert preview.returncode == 0, preview.stdout[-3000:]


def test_ctrl_c_leaves_nothing_that_was_started(sophia: Sophia) -> None:
    sophia.succeeds("down")
    code, output = kill_while_deploying(sophia, signal.SIGINT)
    assert code == 130, output
    assert "Traceback" not in output
    assert processes.marked_with(sophia.stage.paths.state_dir) == []


def test_down_works_with_a_damaged_record(sophia: Sophia) -> None:
    kill_while_deploying(sophia, signal.SIGKILL)
    sophia.stage.paths.run_file.write_text("{")
    refused = sophia("up")
    assert refused.returncode == 2
    assert "run `./sophia down`" in refused.stderr
    assert "Traceback" not in refused.stderr
    sophia.succeeds("down")
    assert processes.marked_with(sophia.stage.paths.state_dir) == []
    assert list(sophia.stage.paths.state_dir.glob("run.damaged-*.json"))


def kill_while_deploying(sophia: Sophia, number: signal.Signals) -> tuple[int, str]:
    """Start `up`, send the signal when Pulumi has begun to create, and give the exit code and what was said."""
    log_path = sophia.stage.paths.log_path("pulumi-up")
    log_path.unlink(missing_ok=True)
    up = sophia.start("up")
    assert await_true(
        lambda: up.poll() is not None or (log_path.exists() and " created " in log_path.read_text(errors="replace")),
        seconds=120,
    )
    assert up.poll() is None, up.stdout.read() if up.stdout else ""
    os.kill(up.pid, number)
    output, _ = up.communicate(timeout=60)
    return up.returncode, output
