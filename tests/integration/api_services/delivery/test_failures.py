"""The failure store in MongoDB."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import Any

import pytest
from pymongo import MongoClient
from pymongo.database import Database
from pymongo.errors import PyMongoError

from api_services.delivery.failures import COLLECTION, Failure, MongoFailureStore
from api_services.indexes import ensure_all_indexes

pytestmark = pytest.mark.integration

FIRST = Failure(
    message_id="m-1",
    queue="interview-completed",
    request_id="req-1",
    error_class="ValueError",
    code="unexpected",
    outcome="failed",
    frames=("api_services.credits.settlement:10 settle",),
    fingerprint="0123456789abcdef",
    receive_count=1,
    at=datetime(2026, 1, 1, tzinfo=UTC),
)
LAST = replace(FIRST, code="not_found", outcome="dead_lettered", receive_count=3, at=FIRST.at + timedelta(minutes=12))


def test_a_message_has_one_record_with_its_first_and_last_failure(mongo_database: Database[dict[str, Any]]) -> None:
    store = MongoFailureStore(lambda: mongo_database)
    store.record([FIRST, replace(FIRST, message_id="m-2")])
    store.record([LAST])
    kept = mongo_database[COLLECTION].find_one({"messageId": "m-1"})
    assert kept is not None
    assert (kept["firstAt"], kept["lastAt"]) == (FIRST.at, LAST.at)
    assert (kept["receiveCount"], kept["code"], kept["outcome"]) == (3, "not_found", "dead_lettered")
    assert [attempt["receiveCount"] for attempt in kept["attempts"]] == [1, 3]
    assert mongo_database[COLLECTION].count_documents({}) == 2


def test_attempts_are_bounded(mongo_database: Database[dict[str, Any]]) -> None:
    store = MongoFailureStore(lambda: mongo_database)
    for count in range(1, 15):
        store.record([replace(FIRST, receive_count=count)])
    kept = mongo_database[COLLECTION].find_one({})
    assert kept is not None
    assert [attempt["receiveCount"] for attempt in kept["attempts"]] == list(range(5, 15))


def test_a_record_expires_fourteen_days_after_the_last_failure(mongo_database: Database[dict[str, Any]]) -> None:
    ensure_all_indexes(mongo_database)
    indexes = mongo_database[COLLECTION].index_information()
    assert indexes["lastAt_1"]["expireAfterSeconds"] == 14 * 24 * 3600


def test_a_database_that_is_away_costs_two_seconds_at_most() -> None:
    with MongoClient[dict[str, Any]]("mongodb://127.0.0.1:1/?replicaSet=rs0") as client:
        began = monotonic()
        with pytest.raises(PyMongoError):
            MongoFailureStore(lambda: client["nowhere"]).record([FIRST])
        assert monotonic() - began < 4
