"""The plugin as a process: what it prints, and how it leaves."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf import empty_pb2
from pulumi.runtime.proto import provider_pb2_grpc
from pulumi.runtime.proto.plugin_pb2 import PluginInfo

from local.pulumi_stage import PLUGIN, PLUGIN_FOLDER
from toolchain.processes import identify

pytestmark = pytest.mark.integration

LAUNCHER = PLUGIN_FOLDER / PLUGIN


@contextmanager
def plugin(cwd: Path, *command: str) -> Generator[subprocess.Popen[str]]:
    process = subprocess.Popen(  # noqa: S603
        command or [str(LAUNCHER)],
        cwd=cwd,
        env={**os.environ, "SOPHIA_AWS_OFFLINE": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def port_of(process: subprocess.Popen[str]) -> int:
    assert process.stdout is not None
    return int(process.stdout.readline())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_prints_its_port_alone_and_leaves_quietly(tmp_path: Path, number: signal.Signals) -> None:
    with plugin(tmp_path) as process:
        port = port_of(process)
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            stub: Any = provider_pb2_grpc.ResourceProviderStub(channel)
            info: PluginInfo = stub.GetPluginInfo(empty_pb2.Empty())
        assert info.version
        process.send_signal(number)
        rest, errors = process.communicate(timeout=10)
        assert (process.returncode, rest, errors) == (0, "", "")


def test_it_leaves_when_the_engine_was_killed(tmp_path: Path) -> None:
    script = (
        "import subprocess, sys, time\n"
        f"child = subprocess.Popen([{str(LAUNCHER)!r}], stdout=subprocess.PIPE, text=True)\n"
        "child.stdout.readline()\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    with plugin(tmp_path, sys.executable, "-c", script) as engine:
        pid = port_of(engine)
        engine.kill()
        deadline = time.monotonic() + 10
        while identify(pid) is not None and time.monotonic() < deadline:
            time.sleep(0.05)
        assert identify(pid) is None
