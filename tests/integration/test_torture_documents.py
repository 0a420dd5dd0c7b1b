"""The crash harness of documents, small: that it kills, and that everything holds afterwards."""

import pytest

from benchmarks.torture.documents import plan_documents, torture_documents
from toolchain.progress import Progress

pytestmark = pytest.mark.integration


def test_consumers_killed_at_random_leave_one_generation_each_and_pay_nothing_twice_but_what_was_under_way() -> None:
    outcome = torture_documents(8, 7, timeout_seconds=240, progress=Progress())
    assert [check for check in outcome.checks if not check.holds] == []
    assert outcome.kills >= 1


def test_the_plan_is_the_seeds() -> None:
    assert plan_documents(50, 7) == plan_documents(50, 7)
    assert plan_documents(50, 7) != plan_documents(50, 8)
