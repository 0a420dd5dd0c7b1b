"""What a cold start pays for."""

import subprocess
import sys

import pytest

HEAVY = ("boto3", "botocore", "pymongo", "openai", "concurrent.futures", "asyncio", "typer", "rich", "httpx")


def loaded(statement: str) -> set[str]:
    code = f"import sys\n{statement}\nprint('\\n'.join(sys.modules))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    return set(result.stdout.split())


@pytest.mark.parametrize(
    "module",
    [
        "functions.platform.sqs_consumer",
        "functions.platform.scheduled",
        "functions.platform.clients",
        "api_services.sqs",
        "api_services.delivery.failures",
        "api_services.interviews.producer",
        "api_services.reports.producer",
    ],
)
def test_what_every_handler_imports_brings_in_no_client(module: str) -> None:
    assert loaded(f"import {module}") & set(HEAVY) == set()
