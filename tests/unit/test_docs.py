"""What the documents say is what the code does."""

from pathlib import Path

import pytest

from api_services.queues import QUEUES, STANDALONE
from cli.docs.lib import GENERATED, write_generated

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("path", GENERATED)
def test_a_generated_document_is_current(path: str) -> None:
    assert (ROOT / path).read_text() == GENERATED[path](), "run `./sophia docs`"


def test_every_queue_and_message_has_its_section() -> None:
    lines = GENERATED["docs/queues.md"]().splitlines()
    for spec in (*QUEUES, *STANDALONE):
        assert f"## {spec.name}" in lines
        for message in spec.messages:
            assert f"### {message.__name__}" in lines


def test_only_what_differs_is_written(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    assert write_generated(tmp_path) == list(GENERATED)
    assert write_generated(tmp_path) == []
