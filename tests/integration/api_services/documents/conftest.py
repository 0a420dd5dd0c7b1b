"""The world of documents, and the model's API on this machine."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pymongo.database import Database

from local.llm.server import LlmServer
from tests.integration.api_services.documents.world import World, make_world


@pytest.fixture
def llm() -> Iterator[LlmServer]:
    server = LlmServer().start()
    yield server
    server.stop()


@pytest.fixture
def world(mongo_database: Database[dict[str, Any]], llm: LlmServer, tmp_path: Path) -> Iterator[World]:
    made = make_world(mongo_database, llm, tmp_path)
    yield made
    made.index.close()
