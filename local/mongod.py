"""A real mongod on a free loopback port, by default as a replica set of one, which transactions need."""

import os
import shutil
import subprocess
import sysconfig
import time
from dataclasses import dataclass
from pathlib import Path

from pymongo import MongoClient
from pymongo.errors import OperationFailure, PyMongoError

from api_services.errors import ConfigurationError
from toolchain import processes

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
    dies_with_parent: bool = False,
    throwaway: bool = False,
) -> Mongod:
    """Start a server on a free port and wait until it takes writes. Data in `data_dir` is kept unless `throwaway`.

    Raises `ConfigurationError` with the end of its log when it does not come up.
    """
    for attempt in range(1, _PORT_ATTEMPTS + 1):
        mongod = _launch(
            data_dir, log_path, replica_set=replica_set, dies_with_parent=dies_with_parent, throwaway=throwaway
        )
        try:
            await_mongod(mongod, log_path, replica_set=replica_set)
        except ConfigurationError:
            mongod.stop()
            # Another process may have taken the port between our look and the server's bind.
            if attempt == _PORT_ATTEMPTS or "Address already in use" not in processes.log_tail(log_path, 60):
                raise
        except BaseException:
            mongod.stop()
            raise
        else:
            return mongod
    raise AssertionError("unreachable: the last attempt returns or raises")


def mongod_command(data_dir: Path, port: int, *, replica_set: bool = True) -> list[str]:
    """Command line of a server on the loopback `port`."""
    command = [mongod_path(), "--dbpath", str(data_dir), "--port", str(port), "--bind_ip", processes.LOOPBACK]
    command += ["--nounixsocket", "--wiredTigerCacheSizeGB", "0.25"]
    command += ["--setParameter", "diagnosticDataCollectionEnabled=false"]
    command += ["--setParameter", "shutdownTimeoutMillisForSignaledShutdown=100"]
    return command + (["--replSet", REPLICA_SET, "--oplogSize", "128"] if replica_set else [])


def _launch(data_dir: Path, log_path: Path, *, replica_set: bool, dies_with_parent: bool, throwaway: bool) -> Mongod:
    port = processes.free_port()
    data_dir.mkdir(parents=True, exist_ok=True)
    process = processes.start(
        mongod_command(data_dir, port, replica_set=replica_set),
        log_path=log_path,
        environ=os.environ,
        dies_with_parent=dies_with_parent,
    )
    return Mongod(mongod_uri(port, replica_set=replica_set), port, process, throwaway)


def mongod_uri(port: int, *, replica_set: bool = True) -> str:
    """Connection string of a server started here on `port`."""
    query = f"replicaSet={REPLICA_SET}" if replica_set else "directConnection=true"
    return f"mongodb://{processes.LOOPBACK}:{port}/?{query}"


def await_mongod(mongod: Mongod, log_path: Path, *, replica_set: bool = True) -> None:
    """Wait until the server takes writes; a replica set is initiated, or follows its server to another port."""
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


def is_writable(port: int) -> bool:
    """Whether a server on that loopback port takes writes now."""
    with MongoClient[dict[str, object]](
        processes.LOOPBACK, port, directConnection=True, serverSelectionTimeoutMS=1000, connectTimeoutMS=1000
    ) as client:
        try:
            return bool(client.admin.command("hello").get("isWritablePrimary"))
        except PyMongoError:
            return False


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
