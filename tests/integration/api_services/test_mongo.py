"""Connecting, transactions and indexes on the real server."""

import threading
import time
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from pymongo import ASCENDING, IndexModel
from pymongo.database import Database
from pymongo.errors import AutoReconnect

from api_services.errors import ConfigurationError, ConflictError, DependencyError
from api_services.indexes import ensure_all_indexes
from api_services.mongo import (
    COMMIT_UNKNOWN,
    DUPLICATE_KEY,
    Session,
    connect,
    ensure_indexes,
    run_in_transaction,
    translated_errors,
)
from api_services.settings import MongoSettings
from local.mongod import start_mongod
from tests.support.commits import break_commits
from toolchain import processes

pytestmark = pytest.mark.integration

Mongo = Database[dict[str, Any]]


def settings_of(uri: str) -> MongoSettings:
    return MongoSettings(mongo_uri=SecretStr(uri), mongo_database="sophia_test")


def test_a_standalone_server_is_refused_within_five_seconds_and_nothing_is_written(tmp_path: Path) -> None:
    mongod = start_mongod(tmp_path / "data", tmp_path / "log", replica_set=False, dies_with_parent=True, throwaway=True)
    try:
        started = time.monotonic()
        with pytest.raises(ConfigurationError, match=r"needs a replica set.*--replSet") as refused:
            connect(settings_of(mongod.uri))
        assert time.monotonic() - started < 5
        assert refused.value.code == "needs_replica_set"
        assert "sophia_test" not in _database_names(mongod.uri)
    finally:
        mongod.stop()


def _database_names(uri: str) -> list[str]:
    from pymongo import MongoClient

    with MongoClient[dict[str, Any]](uri) as client:
        return client.list_database_names()


def test_a_server_that_is_not_there_is_a_transient_fault_within_five_seconds() -> None:
    started = time.monotonic()
    with pytest.raises(DependencyError):
        connect(settings_of(f"mongodb://127.0.0.1:{processes.free_port()}/?replicaSet=rs0"))
    assert time.monotonic() - started < 5


@pytest.mark.parametrize("uri", ["", "localhost", "mongodb://", "mongodb://h:99999/", "mongodb://h/?w=&&"])
def test_a_connection_string_that_is_none_is_a_configuration_error_that_does_not_repeat_it(uri: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        connect(settings_of(uri or "http://user:hunter2@h/"))
    assert "hunter2" not in str(refused.value)


def test_datetimes_come_back_aware_and_writes_wait_for_a_majority(mongo_uri: str) -> None:
    database = connect(settings_of(mongo_uri), app_name="a-test")
    try:
        written = datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=timezone(timedelta(hours=2)))
        database["times"].replace_one({"_id": 1}, {"at": written}, upsert=True)
        read = database["times"].find_one({"_id": 1})
        assert read is not None
        assert read["at"] == written
        assert read["at"].tzinfo is UTC
        assert database.write_concern.document == {"w": "majority"}
        assert database.client.options.retry_writes
    finally:
        database.client.drop_database(database.name)
        database.client.close()


def test_a_transaction_that_conflicts_is_run_again_by_the_driver(mongo_database: Mongo) -> None:
    mongo_database["counters"].insert_one({"_id": "c", "n": 0})
    runs: list[int] = []
    other_wrote = threading.Event()

    def callback(session: Session) -> int:
        runs.append(1)
        document = mongo_database["counters"].find_one({"_id": "c"}, session=session)
        if not other_wrote.is_set():
            mongo_database["counters"].update_one({"_id": "c"}, {"$inc": {"n": 10}})
            other_wrote.set()
        mongo_database["counters"].update_one({"_id": "c"}, {"$inc": {"n": 1}}, session=session)
        return (document or {})["n"]

    assert run_in_transaction(mongo_database, callback, timeout_seconds=10) == 10
    assert len(runs) == 2
    assert mongo_database["counters"].find_one() == {"_id": "c", "n": 11}


def test_an_error_inside_a_transaction_leaves_nothing_behind(mongo_database: Mongo) -> None:
    def callback(session: Session) -> None:
        mongo_database["things"].insert_one({"_id": 1}, session=session)
        raise ConflictError("no")

    with pytest.raises(ConflictError):
        run_in_transaction(mongo_database, callback, timeout_seconds=10)
    assert mongo_database["things"].count_documents({}) == 0


def test_a_commit_that_was_applied_but_not_acknowledged_is_committed_again_and_the_callback_is_not_run_again(
    mongo_database: Mongo, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits = break_commits(monkeypatch, times=1, applied=True)
    runs: list[int] = []

    def callback(session: Session) -> None:
        runs.append(1)
        mongo_database["things"].insert_one({"_id": len(runs)}, session=session)

    run_in_transaction(mongo_database, callback, timeout_seconds=10)
    assert len(runs) == 1
    assert commits() >= 2
    assert mongo_database["things"].count_documents({}) == 1


def test_a_commit_whose_result_stays_unknown_says_so(mongo_database: Mongo, monkeypatch: pytest.MonkeyPatch) -> None:
    break_commits(monkeypatch, times=10**9, applied=True)
    with pytest.raises(DependencyError) as unknown:
        run_in_transaction(
            mongo_database,
            lambda session: mongo_database["things"].insert_one({"_id": 1}, session=session),
            timeout_seconds=1.5,
        )
    assert unknown.value.code == COMMIT_UNKNOWN
    assert mongo_database["things"].count_documents({}) == 1


def test_a_transaction_ends_within_its_time(mongo_database: Mongo) -> None:
    mongo_database["locks"].insert_one({"_id": 1})
    with mongo_database.client.start_session() as holder, holder.start_transaction():
        mongo_database["locks"].update_one({"_id": 1}, {"$set": {"held": True}}, session=holder)
        started = time.monotonic()
        with pytest.raises(DependencyError) as conflict:
            run_in_transaction(
                mongo_database,
                lambda session: mongo_database["locks"].update_one({"_id": 1}, {"$set": {"n": 1}}, session=session),
                timeout_seconds=1,
            )
        assert time.monotonic() - started < 3
        assert conflict.value.code in {"transaction_conflict", "database_timeout"}, (
            "the last repetition may get no answer"
        )
        assert conflict.value.retry_after_seconds == 30
        holder.abort_transaction()


@pytest.mark.parametrize("left", [0, -3])
def test_without_time_a_transaction_is_not_started(mongo_database: Mongo, left: float) -> None:
    with pytest.raises(DependencyError, match="not started"):
        run_in_transaction(mongo_database, lambda session: pytest.fail("it ran"), timeout_seconds=left)


def test_driver_errors_are_translated_and_keep_their_cause(mongo_database: Mongo) -> None:
    mongo_database["things"].insert_one({"_id": 1})
    with pytest.raises(ConflictError) as conflict, translated_errors():
        mongo_database["things"].insert_one({"_id": 1})
    assert conflict.value.code == DUPLICATE_KEY
    with pytest.raises(ConflictError), translated_errors():
        mongo_database["things"].insert_many([{"_id": 2}, {"_id": 1}])
    with pytest.raises(DependencyError) as fault, translated_errors():
        raise AutoReconnect("gone")
    assert isinstance(fault.value.__cause__, AutoReconnect)


def test_making_all_indexes_again_changes_nothing(mongo_database: Mongo) -> None:
    ensure_all_indexes(mongo_database)
    before = _indexes(mongo_database)
    assert "drawing_order" in before["creditLots"]
    ensure_all_indexes(mongo_database)
    assert _indexes(mongo_database) == before


def _indexes(database: Mongo) -> dict[str, dict[str, Any]]:
    return {name: dict(database[name].index_information()) for name in sorted(database.list_collection_names())}


def test_an_index_that_differs_from_the_stored_one_is_a_configuration_error(mongo_database: Mongo) -> None:
    ensure_indexes(mongo_database, {"things": [IndexModel([("a", ASCENDING)], name="one")]})
    with pytest.raises(ConfigurationError) as conflict:
        ensure_indexes(mongo_database, {"things": [IndexModel([("b", ASCENDING)], name="one")]})
    assert conflict.value.code == "index_conflict"
