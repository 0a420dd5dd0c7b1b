"""The polling process, as a process."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from time import monotonic, sleep

import pytest

from local.emulator import Emulator
from tests.support.queues import QueuePair, queue_pair
from tests.unit.functions.platform.consumers import completed

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[3]


@pytest.fixture
def queues(emulator: Emulator) -> Iterator[QueuePair]:
    with queue_pair(emulator) as pair:
        yield pair


def start(
    emulator: Emulator, queues: QueuePair, folder: Path, *arguments: str, record_seconds: float = 0.0
) -> "subprocess.Popen[str]":
    return subprocess.Popen(  # noqa: S603
        [
            sys.executable,
            "-m",
            "tests.integration.functions.polled",
            queues.url,
            queues.dlq_url,
            str(folder),
            str(record_seconds),
            *arguments,
        ],
        cwd=ROOT,
        env={**os.environ, **emulator.environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finish(process: "subprocess.Popen[str]", *, seconds: float = 30) -> str:
    output, _ = process.communicate(timeout=seconds)
    assert process.returncode == 0, output
    return output


def wait_for(path: Path, process: "subprocess.Popen[str]", *, seconds: float = 30) -> None:
    end = monotonic() + seconds
    while not path.exists():
        assert process.poll() is None, process.communicate()[0]
        assert monotonic() < end, f"{path.name} did not appear"
        sleep(0.02)


def test_a_polling_process_deletes_what_was_handled_and_only_that(
    emulator: Emulator, queues: QueuePair, tmp_path: Path
) -> None:
    for interview_id in ("one", "gone", "later", "two"):
        queues.send(completed(interview_id).body())
    queues.send("null")
    worked: set[str] = set()
    for _ in range(5):
        if {"one", "gone", "later", "two"} <= worked:
            break
        finish(start(emulator, queues, tmp_path, "--once"))
        worked = {path.name for path in tmp_path.iterdir()}
    queues.wait_for_depth(queues.url, (0, 1))
    (letter,) = queues.receive(queues.dlq_url)
    assert letter["Body"] == completed("gone").body()
    assert (tmp_path / "one").read_text().startswith("1 ")


def test_a_heartbeat_keeps_a_batch_hidden_beyond_its_lease(
    emulator: Emulator, queues: QueuePair, tmp_path: Path
) -> None:
    queues.send(completed("long").body())
    process = start(emulator, queues, tmp_path, "--once", record_seconds=7)
    wait_for(tmp_path / "long", process)
    began = monotonic()
    seen: list[object] = []
    while not (tmp_path / "long.done").exists() and monotonic() - began < 20:
        seen += queues.receive(queues.url, wait_seconds=0, VisibilityTimeout=1)
        sleep(0.1)
    finish(process)
    assert monotonic() - began > 5
    assert seen == []
    queues.wait_for_depth(queues.url, (0, 0))


def test_a_deferred_message_keeps_its_own_time_while_the_batch_goes_on(
    emulator: Emulator, queues: QueuePair, tmp_path: Path
) -> None:
    for interview_id in ("later", "x1", "x2"):
        queues.send(completed(interview_id).body())
    finish(start(emulator, queues, tmp_path, "--once", record_seconds=2))
    end = monotonic() + 5
    while monotonic() < end:
        assert [each["Body"] for each in queues.receive(queues.url, wait_seconds=1) if "later" in each["Body"]] == []


def test_sigterm_finishes_the_record_under_way_and_gives_the_untouched_back_at_once(
    emulator: Emulator, queues: QueuePair, tmp_path: Path
) -> None:
    names = [f"i-{number}" for number in range(6)]
    for name in names:
        queues.send(completed(name).body())
    process = start(emulator, queues, tmp_path, record_seconds=1.5)
    end = monotonic() + 30
    while not any((tmp_path / name).exists() for name in names):
        assert monotonic() < end
        sleep(0.02)
    process.send_signal(signal.SIGTERM)
    finish(process)
    begun = {name for name in names if (tmp_path / name).exists()}
    assert begun
    assert len(begun) < len(names)
    assert begun == {name for name in names if (tmp_path / f"{name}.done").exists()}
    assert queues.depth(queues.url) == (len(names) - len(begun), 0)


def test_a_killed_process_hides_its_messages_for_the_lease_only(
    emulator: Emulator, queues: QueuePair, tmp_path: Path
) -> None:
    queues.send(completed("long").body())
    process = start(emulator, queues, tmp_path, record_seconds=30)
    wait_for(tmp_path / "long", process)
    process.kill()
    process.communicate()
    (again,) = queues.receive(queues.url, wait_seconds=10)
    assert again["Attributes"]["ApproximateReceiveCount"] == "2"


def test_polling_until_empty_waits_for_hidden_messages_too(
    emulator: Emulator, queues: QueuePair, tmp_path: Path
) -> None:
    queues.send(completed("bad").body())
    finish(start(emulator, queues, tmp_path), seconds=60)
    assert queues.depth(queues.url) == (0, 0)
    (letter,) = queues.receive(queues.dlq_url)
    assert letter["Body"] == completed("bad").body()


def poll(emulator: Emulator, *arguments: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(  # noqa: S603
        [sys.executable, "-m", "functions.poll", *arguments],
        cwd=ROOT,
        env={**os.environ, **emulator.environ, **environ},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_command_says_in_one_sentence_what_it_lacks(emulator: Emulator, queues: QueuePair) -> None:
    result = poll(emulator, "interview-completed")
    assert (result.returncode, result.stderr.count("\n")) == (2, 1)
    assert "INTERVIEW_COMPLETED_QUEUE_URL is not set" in result.stderr


def test_the_command_gives_messages_back_when_the_process_must_not_run_like_this(
    emulator: Emulator, queues: QueuePair
) -> None:
    queues.send(completed("one").body())
    environ = {"INTERVIEW_COMPLETED_QUEUE_URL": queues.url, "INTERVIEW_COMPLETED_DLQ_URL": queues.dlq_url}
    result = poll(emulator, "interview-completed", "--once", **environ)
    assert result.returncode == 2, result.stderr
    assert "MONGO_URI" in result.stderr
    assert queues.depth(queues.url) == (1, 0)


@pytest.mark.parametrize(
    "arguments", [["no-such-queue"], [], ["ingest", "--wait-seconds", "21"], ["ingest", "--lease-seconds", "0"]]
)
def test_the_command_refuses_what_it_does_not_know(emulator: Emulator, arguments: list[str]) -> None:
    assert poll(emulator, *arguments).returncode == 2
