import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import boto3
import pytest
from pymongo import MongoClient
from pymongo.client_session import ClientSession
from pymongo.database import Database

from api_services.errors import ConfigurationError
from local.emulator import Emulator
from local.mongod import start_mongod
from toolchain import processes

pytestmark = pytest.mark.integration


def test_a_transaction_commits_on_the_replica_set(mongo_database: Database[dict[str, Any]]) -> None:
    def write(session: ClientSession) -> None:
        mongo_database["a"].insert_one({"_id": 1}, session=session)
        mongo_database["b"].insert_one({"_id": 1}, session=session)

    with mongo_database.client.start_session() as session:
        session.with_transaction(write)
    assert mongo_database["b"].count_documents({}) == 1


def test_data_survives_a_restart_on_another_port(tmp_path: Path) -> None:
    first = start_mongod(tmp_path / "data", tmp_path / "log", dies_with_parent=True)
    try:
        with MongoClient[dict[str, Any]](first.uri) as client:
            client["shop"]["kept"].insert_one({"_id": 1})
    finally:
        first.stop()
    second = start_mongod(tmp_path / "data", tmp_path / "log", dies_with_parent=True)
    try:
        assert second.port != first.port
        with MongoClient[dict[str, Any]](second.uri, serverSelectionTimeoutMS=5000) as client:
            assert client["shop"]["kept"].count_documents({}) == 1
    finally:
        second.stop()
    assert processes.port_is_free(second.port)


def test_a_standalone_is_started_when_asked_for(tmp_path: Path) -> None:
    mongod = start_mongod(tmp_path / "data", tmp_path / "log", replica_set=False, dies_with_parent=True, throwaway=True)
    try:
        with MongoClient[dict[str, Any]](mongod.uri, serverSelectionTimeoutMS=5000) as client:
            assert "setName" not in client.admin.command("hello")
    finally:
        mongod.stop()


def test_a_mongod_that_cannot_start_is_an_error_with_its_own_words(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "storage.bson").write_text("not BSON")
    with pytest.raises(
        ConfigurationError, match=r"mongod ended with exit code \d+ while starting; its log .* says: \S"
    ):
        start_mongod(tmp_path / "data", tmp_path / "log", dies_with_parent=True)


def test_the_emulator_delivers_a_message(emulator: Emulator) -> None:
    sqs = boto3.client(  # pyright: ignore[reportUnknownMemberType]
        "sqs",
        endpoint_url=emulator.endpoint_url,
        region_name="eu-west-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",
    )
    url = sqs.create_queue(QueueName="hello")["QueueUrl"]
    sqs.send_message(QueueUrl=url, MessageBody="{}")
    assert sqs.receive_message(QueueUrl=url, WaitTimeSeconds=2).get("Messages", [])[0].get("Body") == "{}"


def test_the_emulator_listens_on_loopback_alone(emulator: Emulator) -> None:
    listening = subprocess.run(  # noqa: S603
        [sys.executable, "-c", _LISTENERS, str(emulator.pid)], capture_output=True, text=True, check=True
    ).stdout.split()
    assert listening == [f"127.0.0.1:{emulator.port}"]


_LISTENERS = """
import os, sys, pathlib
inodes = set()
for fd in pathlib.Path(f"/proc/{sys.argv[1]}/fd").iterdir():
    target = os.readlink(fd)
    if target.startswith("socket:["):
        inodes.add(target[8:-1])
for family in ("tcp", "tcp6"):
    for line in pathlib.Path(f"/proc/net/{family}").read_text().splitlines()[1:]:
        row = line.split()
        if row[3] == "0A" and row[9] in inodes:
            address, port = row[1].split(":")
            print(".".join(str(b) for b in bytes.fromhex(address)[::-1]) + ":" + str(int(port, 16)))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel of other systems has no parent-death signal")
def test_a_server_dies_with_the_process_that_started_it(tmp_path: Path) -> None:
    program = textwrap.dedent(
        """
        import os, pathlib, sys, time
        from local.mongod import start_mongod
        home = pathlib.Path(sys.argv[1])
        mongod = start_mongod(home / "data", home / "log", dies_with_parent=True)
        print(mongod.pid, flush=True)
        time.sleep(600)
        """
    )
    parent = subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE, text=True)  # noqa: S603
    assert parent.stdout is not None
    server = processes.identify(int(parent.stdout.readline()))
    assert server is not None
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    deadline = time.monotonic() + 15
    while processes.is_running(server) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not processes.is_running(server)
