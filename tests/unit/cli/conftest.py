"""AWS inside the test's own process: nothing leaves it, and the user's own settings have no say."""

from collections.abc import Iterator

import boto3
import botocore.session
import pytest
from moto import mock_aws


@pytest.fixture(scope="session")
def service_models() -> botocore.session.Session:
    """Keeps what it read of the services' models, which takes longer than most tests."""
    return botocore.session.Session()


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch, service_models: botocore.session.Session) -> Iterator[boto3.Session]:
    for name in ("AWS_ENDPOINT_URL", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    with mock_aws():
        yield boto3.Session(
            aws_access_key_id="test",
            aws_secret_access_key="test",
            region_name="eu-west-1",
            botocore_session=service_models,
        )
