"""Fixtures shared by all tests: the real mongod and the emulator, each started once when first asked for."""

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from pymongo import MongoClient
from pymongo.database import Database

from local.emulator import Emulator, start_emulator
from local.mongod import start_mongod


@pytest.fixture(scope="session")
def mongo_uri(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Connection string of a replica set that lives as long as the test session."""
    home = tmp_path_factory.mktemp("mongod")
    mongod = start_mongod(home / "data", home / "mongod.log", dies_with_parent=True, throwaway=True)
    yield mongod.uri
    mongod.stop()


@pytest.fixture(scope="session")
def mongo_client(mongo_uri: str) -> Iterator[MongoClient[dict[str, Any]]]:
    with MongoClient[dict[str, Any]](mongo_uri, tz_aware=True) as client:
        yield client


@pytest.fixture
def mongo_database(mongo_client: MongoClient[dict[str, Any]]) -> Iterator[Database[dict[str, Any]]]:
    """An empty database of the test's own, dropped after it."""
    name = f"test_{uuid.uuid4().hex}"
    yield mongo_client[name]
    mongo_client.drop_database(name)


@pytest.fixture(scope="session")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    """The AWS emulator; `endpoint_url` is where it listens, `environ` what a client of it needs."""
    home = tmp_path_factory.mktemp("emulator")
    started = start_emulator(home / "work", home / "emulator.log", dies_with_parent=True)
    yield started
    started.stop()
