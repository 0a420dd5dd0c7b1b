"""Every test that the guarantees name exists."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]

TEST = re.compile(r"^\s*(?:async )?def (test_\w+)\(", re.MULTILINE)


def test_the_tests_that_guarantees_name_exist() -> None:
    named = set(re.findall(r"`(test_\w+)`", (ROOT / "docs/guarantees.md").read_text()))
    assert len(named) > 30
    written = {name for path in (ROOT / "tests").rglob("test_*.py") for name in TEST.findall(path.read_text())}
    assert sorted(named - written) == []
