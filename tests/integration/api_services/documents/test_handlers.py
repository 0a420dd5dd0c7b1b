"""The two functions as Lambda calls them: connected from the environment, through the consumer's wrapper."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pymongo.database import Database

from api_services.documents.errors import IndexMismatchError
from api_services.documents.index.connect import open_index
from api_services.documents.models import DocumentState
from api_services.documents.settings import IndexSettings
from api_services.queues import INGEST
from functions.ingest.ingest import connect as connect_ingest
from functions.ingest.ingest import ingest
from functions.platform import clients
from functions.platform.sqs_consumer import SqsConsumer, sqs_consumer
from functions.reconcile_index.handler import handler as reconcile_handler
from local.llm.server import LlmServer
from tests.integration.api_services.documents.world import World, make_world, prose
from tests.support.fakes import FakeDelivery, FakeFailureStore, FakeLambdaContext, sqs_record

pytestmark = pytest.mark.integration


@pytest.fixture
def environment(
    monkeypatch: pytest.MonkeyPatch,
    mongo_uri: str,
    mongo_database: Database[dict[str, Any]],
    llm: LlmServer,
    tmp_path: Path,
) -> Iterator[None]:
    """What infrastructure gives the functions."""
    values = {
        "MONGO_URI": mongo_uri,
        "MONGO_DATABASE": mongo_database.name,
        "OPENAI_API_KEY": "test-key",
        "OPENAI_BASE_URL": llm.base_url,
        "INDEX_URL": f"file:{tmp_path / 'index.db'}",
    }
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    clients.mongo_database.cache_clear()
    clients.queue_sender.cache_clear()
    yield
    clients.mongo_database().client.close()
    clients.mongo_database.cache_clear()
    clients.queue_sender.cache_clear()


@pytest.fixture
def delivery() -> FakeDelivery:
    return FakeDelivery()


@pytest.fixture
def consumer(environment: None, delivery: FakeDelivery) -> SqsConsumer[Any, Any]:
    return sqs_consumer(INGEST, ingest, connect=connect_ingest, delivery=lambda: delivery, failures=FakeFailureStore)


def deliver(consumer: SqsConsumer[Any, Any], world: World, document_id: str, receive_count: int = 1) -> Any:
    record = sqs_record("m-1", world.message(document_id))
    record["attributes"] = {"ApproximateReceiveCount": str(receive_count)}
    return consumer({"Records": [record]}, FakeLambdaContext(900_000))


@pytest.fixture
def portal(mongo_database: Database[dict[str, Any]], llm: LlmServer, tmp_path: Path) -> Iterator[World]:
    made = make_world(mongo_database, llm, tmp_path)
    yield made
    made.index.close()


def test_a_record_becomes_an_indexed_document(consumer: SqsConsumer[Any, Any], portal: World) -> None:
    portal.approve("guide", prose(3))
    assert deliver(consumer, portal, "guide") == {"batchItemFailures": []}
    assert portal.documents.get("guide").state is DocumentState.INDEXED
    assert portal.find("alpha1word3").hits[0].document_id == "guide"


def test_a_malformed_document_is_dead_lettered_at_once_with_its_reason(
    consumer: SqsConsumer[Any, Any], portal: World, delivery: FakeDelivery
) -> None:
    portal.approve("broken", b"\xff\xfe")
    assert deliver(consumer, portal, "broken") == {"batchItemFailures": []}
    ((record, reason),) = delivery.dead_letters
    assert (record["messageId"], reason.code) == ("m-1", "not_utf8")
    assert portal.documents.get("broken").state is DocumentState.FAILED


def test_an_outage_is_reported_as_failed_and_on_the_last_receive_the_document_says_so(
    consumer: SqsConsumer[Any, Any], portal: World, llm: LlmServer
) -> None:
    portal.approve("guide", prose(1))
    llm.stop()
    assert deliver(consumer, portal, "guide")["batchItemFailures"] == [{"itemIdentifier": "m-1"}]
    assert portal.documents.get("guide").state is DocumentState.QUEUED
    assert deliver(consumer, portal, "guide", receive_count=3)["batchItemFailures"] == [{"itemIdentifier": "m-1"}]
    failed = portal.documents.get("guide")
    assert failed.state is DocumentState.FAILED
    assert failed.failure is not None
    assert failed.failure.code == "llm_unavailable"


def test_an_index_of_another_model_keeps_the_consumer_from_starting(
    consumer: SqsConsumer[Any, Any], portal: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EMBEDDING_MODEL", "text-embedding-3-large")
    portal.approve("guide", prose(1))
    with pytest.raises(IndexMismatchError, match=r"1536 dimensions.*text-embedding-3-large gives 3072"):
        deliver(consumer, portal, "guide")
    assert portal.documents.get("guide").state is DocumentState.QUEUED


def test_the_hourly_job_counts_what_it_found(
    environment: None, portal: World, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    other = open_index(IndexSettings(index_url=f"file:{tmp_path / 'index.db'}"))
    other.replace(document_id="stranger", title="?", version=1, revision=1, chunks=[])
    reconcile_handler({}, FakeLambdaContext(300_000))
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line.startswith("{")]
    assert [line["IndexDrift"] for line in lines if "IndexDrift" in line] == [1]
    entry = other.entry("stranger")
    assert entry is not None
    assert entry.removed
    other.close()
