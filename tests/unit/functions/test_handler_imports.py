"""What a cold start of each handler loads."""

import subprocess
import sys

import pytest

HEAVY = ("openai", "langfuse", "boto3", "botocore", "fastapi", "typer", "rich", "libsql", "pulumi")


@pytest.mark.parametrize(
    "module", ["interview_completed", "interview_failed", "report_generate", "reconcile_interviews"]
)
def test_a_handler_loads_no_sdk_before_it_needs_it(module: str) -> None:
    script = f"import functions.{module}.handler, sys; print(*sorted(set({HEAVY!r}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout.split() == []
