"""Fixtures of the services' tests on the real mongod."""

from typing import Any

import pytest
from pymongo.database import Database

from tests.support.worlds import World


@pytest.fixture
def world(mongo_database: Database[dict[str, Any]]) -> World:
    return World(mongo_database)
