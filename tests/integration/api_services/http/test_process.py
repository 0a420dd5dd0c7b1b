"""`python -m api_services.http` as the stage runs it: its environment, its start, its end."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from local.emulator import Emulator
from tests.unit.api_services.http.api import as_role, secret
from toolchain.processes import free_port

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[4]
DEADLINE_SECONDS = 40.0


def _environ(mongo_uri: str, **more: str) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "MONGO_URI": mongo_uri,
        "MONGO_DATABASE": "test_process",
        "OPENAI_API_KEY": "sk-local",
        "API_KEYS": secret(),
        "STAGE": "local",
        **more,
    }


@contextmanager
def _api(environ: Mapping[str, str], port: int) -> Generator[subprocess.Popen[str]]:
    process = subprocess.Popen(  # noqa: S603  (our own module)
        [sys.executable, "-m", "api_services.http", "--port", str(port)],
        cwd=ROOT,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def _wait_for(url: str, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while time.monotonic() < deadline:
        assert process.poll() is None, "the process ended"
        try:
            if httpx.get(url, timeout=2).status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.05)
    raise AssertionError(f"no answer at {url}")


def test_the_process_is_ready_with_its_queues_sends_to_them_and_ends_on_sigterm(
    mongo_uri: str, emulator: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    import boto3

    for key, value in emulator.environ.items():
        monkeypatch.setenv(key, value)
    sqs: Any = boto3.client("sqs")
    secrets = boto3.client("secretsmanager")
    urls = {
        f"{name}_QUEUE_URL": sqs.create_queue(QueueName=f"process-{name.lower()}")["QueueUrl"]
        for name in ("INTERVIEW_COMPLETED", "INGEST")
    }
    arn = secrets.create_secret(Name="process/api-keys", SecretString=secret())["ARN"]
    environ = _environ(mongo_uri, **urls, **emulator.environ, API_KEYS_SECRET_ARN=arn)
    del environ["API_KEYS"]
    port = free_port()
    with _api(environ, port) as process:
        base = f"http://127.0.0.1:{port}"
        _wait_for(f"{base}/readyz", process)
        assert httpx.get(f"{base}/readyz").json()["checks"] == {
            "mongodb": "ok",
            "interview-completed": "ok",
            "ingest": "ok",
        }
        created = httpx.post(
            f"{base}/interviews", json={"organizationId": "org-p", "creditsRequired": 1}, headers=as_role("bot")
        )
        path = f"{base}/interviews/{created.json()['interviewId']}/complete"
        assert httpx.post(path, headers={**as_role("bot"), "X-Request-Id": "process-1"}).status_code == 200
        message = sqs.receive_message(
            QueueUrl=urls["INTERVIEW_COMPLETED_QUEUE_URL"], MessageAttributeNames=["All"], WaitTimeSeconds=5
        )["Messages"][0]
        assert json.loads(message["Body"])["organizationId"] == "org-p"
        assert message["MessageAttributes"]["requestId"]["StringValue"] == "process-1"
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=DEADLINE_SECONDS)
        assert process.returncode in {0, -signal.SIGTERM}
        lines = [json.loads(line) for line in output.splitlines()]
        assert any(line["event"] == "http.request" and line["requestId"] == "process-1" for line in lines)


def test_without_queue_urls_it_serves_but_is_not_ready(mongo_uri: str) -> None:
    port = free_port()
    with _api(_environ(mongo_uri), port) as process:
        _wait_for(f"http://127.0.0.1:{port}/healthz", process)
        ready = httpx.get(f"http://127.0.0.1:{port}/readyz")
        assert ready.status_code == 503
        assert ready.json()["checks"]["ingest"] == "queue_url_missing"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"API_KEYS": "{}"}, "sophia secrets set api-keys"),
        ({"MONGO_URI": ""}, "MONGO_URI"),
        ({"MONGO_URI": "http://nowhere"}, "MONGO_URI"),
    ],
)
def test_a_process_that_cannot_start_says_why_in_one_line(mongo_uri: str, change: dict[str, str], said: str) -> None:
    with _api({**_environ(mongo_uri), **change}, free_port()) as process:
        _, errors = process.communicate(timeout=DEADLINE_SECONDS)
        assert process.returncode == 2
        assert said in errors
        assert len(errors.strip().splitlines()) == 1
