"""Every row of the table is complete, and the document says what it says."""

import subprocess
import sys
from pathlib import Path

import pytest

from local.aws.catalog import TABLE
from local.aws.document import local_stage_markdown

ROOT = Path(__file__).parents[4]


@pytest.mark.parametrize("kind", sorted(TABLE))
def test_a_row_is_complete(kind: str) -> None:
    row = TABLE[kind]
    assert row.resource_type == kind
    assert row.naming is None or row.properties[row.naming.property].replaces, "another name is another resource"
    assert (row.locate is None) == (not row.exists), "what can be taken can be found, and only that"
    assert row.accepted >= row.properties.keys()


@pytest.mark.parametrize("kind", sorted(TABLE))
def test_every_gap_of_a_row_is_in_the_document(kind: str) -> None:
    document, row = local_stage_markdown(), TABLE[kind]
    gaps = [row.local_gap, row.refusal, *(prop.local_gap for prop in row.properties.values())]
    missing = [gap for gap in gaps if gap and gap not in document]
    assert not missing


def test_starting_the_plugin_loads_no_aws_client() -> None:
    script = (
        "import sys, local.aws.server; print(*[m for m in ('botocore', 'boto3', 'pulumi_aws') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout.strip() == "", "an offline preview would pay for it"
