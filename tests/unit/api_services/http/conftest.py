"""Fixtures of the API's unit tests."""

from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient

from tests.unit.api_services.http.api import Api


@pytest.fixture
def api() -> Api:
    return Api()


@pytest.fixture
def client(api: Api) -> Iterator[TestClient]:
    with TestClient(api.app) as client:
        yield client
