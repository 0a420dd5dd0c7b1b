"""The API on a real MongoDB, with a queue that keeps what it is sent and a search that answers one hit."""

from collections.abc import Iterator
from contextlib import nullcontext

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from api_services.credits.repository import CreditRepository
from api_services.documents.repository import DocumentRepository
from api_services.http.app import create_app
from api_services.http.auth import ApiKeys
from api_services.http.dependencies import ApiDependencies
from api_services.indexes import ensure_all_indexes
from api_services.interviews.repository import InterviewRepository
from api_services.mongo import MongoDatabase
from api_services.reports.repository import ReportRepository
from tests.integration.api_services.http.serving import served
from tests.support.fakes import FakeQueueSender
from tests.unit.api_services.http.api import FakeSearch, secret


@pytest.fixture
def sender() -> FakeQueueSender:
    return FakeQueueSender()


@pytest.fixture
def app(mongo_database: MongoDatabase, sender: FakeQueueSender) -> FastAPI:
    ensure_all_indexes(mongo_database)
    dependencies = ApiDependencies(
        keys=ApiKeys.parse(secret()),
        interviews=InterviewRepository(mongo_database),
        credits=CreditRepository(mongo_database),
        reports=ReportRepository(mongo_database),
        documents=DocumentRepository(mongo_database),
        sender=sender,
        search=FakeSearch(),
        secure_cookies=False,
    )
    return create_app(lambda: nullcontext(dependencies))


@pytest.fixture
def client(app: FastAPI) -> Iterator[TestClient]:
    with TestClient(app) as client:
        yield client


@pytest.fixture
def base_url(app: FastAPI) -> Iterator[str]:
    with served(app) as url:
        yield url
