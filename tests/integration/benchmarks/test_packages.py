"""The benchmarks that build packages, at their smallest."""

import pytest

from benchmarks import imports, memory

pytestmark = pytest.mark.integration


def test_a_handler_with_bytecode_is_imported_faster_than_without() -> None:
    rows = {row.floor_name: row for row in imports.run(True)}
    bare = rows["without bytecode"]
    assert bare.ratio is not None
    assert bare.ratio < 0.8
    assert rows["its libraries alone"].value > 0


def test_a_handlers_process_reports_its_own_peak_memory() -> None:
    (row,) = memory.run(True)
    assert 20 < row.value < 512
