"""A real mongod on a free loopback port, by default as a replica set of one, which transactions need."""

import os
import shutil
import subprocess
import sysconfig
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pymongo import MongoClient
from pymongo.errors import OperationFailure, PyMongoError

from api_services.errors import ConfigurationError
from local import processes

REPLICA_SET = "rs0"
_START_TIMEOUT_SECONDS = 60.0
_PORT_ATTEMPTS = 3
_NOT_YET_INITIALIZED = 94
_ALREADY_INITIALIZED = 23
_NOT_A_MEMBER = 93


@dataclass(frozen=True, slots=True)
class Mongod:
    """A running server; `stop()` ends it."""

    uri: str
    port: int
    process: subprocess.Popen[bytes]
    throwaway: bool

    @property
    def pid(self) -> int:
        return self.process.pid

    def stop(self) -> None:
        processes.stop_child(self.process, at_once=self.throwaway)


def mongod_path() -> str:
    """The server's executable: from the package in this environment, else from PATH."""
    packaged = Path(sysconfig.get_path("purelib")) / "fiftyone" / "db" / "bin" / "mongod"
    if packaged.exists():
        return str(packaged)
    found = shutil.which("mongod")
    if found is None:
        raise ConfigurationError(
            "no mongod: this platform has no packaged one; install MongoDB 6 or later so that 'mongod' is on PATH.",
            code="mongod_missing",
        )
    return found


def start_mongod(
    data_dir: Path,
    log_path: Path,
    *,
    replica_set: bool = True,
    port: int | None = None,
    environ: Mapping[str, str] | None = None,
    dies_with_parent: bool = False,
    throwaway: bool = False,
) -> Mongod:
    """Start a server on `port`, or on a free one, and wait until it takes writes. Data in `data_dir` is kept.

    Raises `ConfigurationError` with the end of its log when it does not come up.
    """
    data_dir.mkdir(parents=True, exist_ok=True)
    attempts = 1 if port is not None else _PORT_ATTEMPTS
    for attempt in range(1, attempts + 1):
        chosen = port or processes.free_port()
        mongod = _launch(data_dir, log_path, chosen, replica_set, environ, dies_with_parent, throwaway)
        try:
            _wait(mongod, log_path, replica_set)
        except ConfigurationError:
            mongod.stop()
            # Another process may have taken the port between our look and the server's bind.
            if attempt == attempts or "Address already in use" not in processes.log_tail(log_path, 60):
                raise
        except BaseException:
            mongod.stop()
            raise
        else:
            return mongod
    raise AssertionError("unreachable: the last attempt returns or raises")


def _launch(
    data_dir: Path,
    log_path: Path,
    port: int,
    replica_set: bool,
    environ: Mapping[str, str] | None,
    dies_with_parent: bool,
    throwaway: bool,
) -> Mongod:
    command = [
        mongod_path(),
        "--dbpath",
        str(data_dir),
        "--port",
        str(port),
        "--bind_ip",
        processes.LOOPBACK,
        "--nounixsocket",
        "--wiredTigerCacheSizeGB",
        "0.25",
        "--setParameter",
        "diagnosticDataCollectionEnabled=false",
        "--setParameter",
        "shutdownTimeoutMillisForSignaledShutdown=100",
    ]
    if replica_set:
        command += ["--replSet", REPLICA_SET, "--oplogSize", "128"]
    process = processes.start(
        command,
        log_path=log_path,
        environ=os.environ if environ is None else environ,
        dies_with_parent=dies_with_parent,
    )
    query = f"replicaSet={REPLICA_SET}&" if replica_set else ""
    uri = f"mongodb://{processes.LOOPBACK}:{port}/?{query}directConnection={'false' if replica_set else 'true'}"
    return Mongod(uri, port, process, throwaway)


def _wait(mongod: Mongod, log_path: Path, replica_set: bool) -> None:
    client: MongoClient[dict[str, object]] = MongoClient(
        processes.LOOPBACK, mongod.port, directConnection=True, serverSelectionTimeoutMS=50, connectTimeoutMS=500
    )
    with client:

        def answers() -> bool:
            try:
                client.admin.command("ping")
            except PyMongoError:
                return False
            return True

        deadline = time.monotonic() + _START_TIMEOUT_SECONDS
        processes.wait_until_ready(
            "mongod", mongod.process, answers, log_path=log_path, timeout_seconds=_START_TIMEOUT_SECONDS
        )
        if not replica_set:
            return
        _configure_replica_set(client, mongod.port)

        def is_primary() -> bool:
            try:
                return bool(client.admin.command("hello").get("isWritablePrimary"))
            except PyMongoError:
                return False

        processes.wait_until_ready(
            "mongod",
            mongod.process,
            is_primary,
            log_path=log_path,
            timeout_seconds=max(1.0, deadline - time.monotonic()),
        )


def _configure_replica_set(client: "MongoClient[dict[str, object]]", port: int) -> None:
    host = f"{processes.LOOPBACK}:{port}"
    members = [{"_id": 0, "host": host}]
    try:
        current = client.admin.command("replSetGetConfig")["config"]
    except OperationFailure as exc:
        if exc.code != _NOT_YET_INITIALIZED:
            raise
        client.admin.command("replSetInitiate", {"_id": REPLICA_SET, "members": members})
        return
    if current["members"][0]["host"] != host:
        # The data was made on another port; the only member may rename itself by force.
        renamed = {**current, "members": [{**current["members"][0], "host": host}], "version": current["version"] + 1}
        client.admin.command("replSetReconfig", renamed, force=True)
