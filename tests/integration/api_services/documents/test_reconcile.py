"""The hourly comparison finds what was lost on the way, and nothing else."""

from datetime import timedelta

import pytest

from api_services.documents.ingest import IngestOutcome
from api_services.documents.models import DocumentState
from api_services.documents.reconcile import IndexDifference, reconcile_index
from api_services.documents.service import withdraw_document
from api_services.errors import DependencyError
from tests.integration.api_services.documents.world import World, prose

pytestmark = pytest.mark.integration


def run(world: World, *, execute: bool = True, patience: timedelta = timedelta(0)) -> IndexDifference:
    world.sender.sent.clear()
    return reconcile_index(world.documents, world.index, world.sender, patience=patience, execute=execute)


def test_an_index_in_line_is_left_alone(world: World) -> None:
    world.index_document("guide", prose(2))
    world.index_document("empty", "")
    assert run(world).total == 0
    assert world.sender.sent == []


def test_what_was_lost_stale_or_left_behind_is_ordered_and_then_in_line(world: World) -> None:
    world.index_document("stale", prose(2, seed="one"))
    world.index_document("gone", prose(2, seed="two"))
    world.sender.fail_with = DependencyError("the queue is away")
    world.approve("missing", prose(2, seed="three"))
    world.approve("stale", prose(2, seed="four"))
    withdraw_document(world.documents, world.sender, document_id="gone")
    world.sender.fail_with = None
    difference = run(world)
    assert (difference.missing, difference.stale, difference.unwanted) == (("missing",), ("stale",), ("gone",))
    for name in ("missing", "stale", "gone"):
        world.deliver(name)
    assert run(world).total == 0
    assert world.documents.get("missing").state is DocumentState.INDEXED


def test_a_document_lost_from_the_index_comes_back_for_free(world: World) -> None:
    world.index_document("guide", prose(3))
    world.index.remove(document_id="guide", version=1, revision=1)
    world.llm.calls.reset()
    assert run(world).missing == ("guide",)
    assert world.deliver("guide") is IngestOutcome.INDEXED
    assert (world.index.count_chunks(), world.received()) == (3, {})
    assert world.documents.get("guide").state is DocumentState.INDEXED


def test_an_index_put_back_from_yesterday_is_brought_forward(world: World) -> None:
    world.index_document("guide", prose(2, seed="one"))
    world.approve("guide", prose(2, seed="two"))
    world.documents.mark(world.documents.get("guide"), DocumentState.INDEXED)
    assert run(world).stale == ("guide",)


def test_an_entry_no_document_knows_is_removed(world: World) -> None:
    world.index.replace(document_id="stranger", title="?", version=1, revision=1, chunks=[])
    assert run(world).unwanted == ("stranger",)
    assert run(world).total == 0


def test_what_changed_a_moment_ago_is_on_its_way(world: World) -> None:
    world.approve("guide", prose(1))
    assert run(world, patience=timedelta(minutes=30)).total == 0


def test_a_failed_document_waits_for_its_approver(world: World) -> None:
    world.approve("broken", b"\xff\xff")
    with pytest.raises(Exception, match="UTF-8"):
        world.deliver("broken")
    assert run(world).total == 0


def test_a_look_changes_nothing(world: World) -> None:
    world.approve("guide", prose(1))
    world.index.replace(document_id="stranger", title="?", version=1, revision=1, chunks=[])
    assert run(world, execute=False).total == 2
    assert world.sender.sent == []
    assert world.index.entry("stranger") is not None
