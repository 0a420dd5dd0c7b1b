"""From approval to search, whatever is delivered twice, late, or in the wrong order."""

import threading

import pytest

from api_services.documents.errors import MalformedDocumentError
from api_services.documents.ingest import IngestOutcome
from api_services.documents.messages import IngestDocument
from api_services.documents.models import MAX_CONTENT_BYTES, DocumentState
from api_services.documents.service import approve_document, upsert_document, withdraw_document
from api_services.errors import (
    BusyError,
    ConflictError,
    DependencyError,
    InvalidInputError,
    InvalidStateError,
    NotFoundError,
    QuotaExhaustedError,
    TransientError,
)
from local.llm.faults import Fault
from tests.integration.api_services.documents.world import World, in_background, prose, until

pytestmark = pytest.mark.integration


def test_an_approved_document_is_found_by_its_words_with_the_hits_marked(world: World) -> None:
    assert world.index_document("guide", prose(4)) is IngestOutcome.INDEXED
    document = world.documents.get("guide")
    assert (document.state, document.chunks_done, document.chunks_total) == (DocumentState.INDEXED, 4, 4)
    hit = world.find("alpha2word7").hits[0]
    assert (hit.document_id, hit.document_title, hit.heading) == ("guide", "Handbook", "Section 2 of alpha")
    start, end = hit.highlights[0]
    assert hit.snippet[start:end] == "alpha2word7"


def test_a_second_delivery_changes_nothing_and_calls_nothing(world: World) -> None:
    world.index_document("guide", prose(4))
    entry, calls = world.index.entry("guide"), world.received()
    assert world.deliver("guide") is IngestOutcome.CURRENT
    assert (world.index.entry("guide"), world.received()) == (entry, calls)


def test_an_edited_paragraph_pays_for_its_chunk_alone(world: World) -> None:
    text = prose(8)
    world.index_document("guide", text)
    world.llm.calls.reset()
    assert world.index_document("guide", text.replace("alpha5word3", "edited")) is IngestOutcome.INDEXED
    assert world.calls() == {"responses": 1, "embeddings": 1}
    assert world.index.count_chunks() == 8
    assert world.find("edited").hits[0].version == 2


def test_a_shorter_version_leaves_nothing_of_the_longer_one(world: World) -> None:
    world.index_document("doc-3", prose(9, seed="old"))
    world.index_document("doc-3", prose(4, seed="new"))
    assert world.index.count_chunks() == 4
    assert all("old" not in hit.snippet for hit in world.find("old3word5", limit=100).hits)


@pytest.mark.parametrize("content", ["", "\n \t\n", " \u0000 "])
def test_a_blank_document_succeeds_without_chunks_or_calls_and_removes_the_old_ones(world: World, content: str) -> None:
    world.index_document("guide", prose(3))
    world.llm.calls.reset()
    assert world.index_document("guide", content) is IngestOutcome.EMPTY
    assert world.documents.get("guide").state is DocumentState.EMPTY
    assert (world.index.count_chunks(), world.received()) == (0, {})


def test_bytes_that_are_no_text_fail_for_good_with_their_place(world: World) -> None:
    world.approve("broken", b"fine so far \xff\xfe")
    with pytest.raises(MalformedDocumentError, match="byte 12"):
        world.deliver("broken")
    document = world.documents.get("broken")
    assert document.state is DocumentState.FAILED
    assert document.failure is not None
    assert document.failure.code == "not_utf8"
    assert world.received() == {}


def test_a_document_over_the_limit_is_refused_at_the_door(world: World) -> None:
    with pytest.raises(InvalidInputError, match="split it"):
        world.approve("huge", "x" * (MAX_CONTENT_BYTES + 1))


def test_characters_no_store_takes_are_replaced_and_the_rest_is_found(world: World) -> None:
    assert world.index_document("odd", "before\u0000after \ud83d lonely") is IngestOutcome.INDEXED
    assert "\u0000" not in world.find("lonely").hits[0].snippet
    assert "before after \ufffd lonely" in world.find("lonely").hits[0].snippet


def test_the_same_version_twice_at_once_is_worked_on_once(world: World) -> None:
    world.approve("guide", prose(12))
    world.llm.latency_seconds = 0.3
    thread, outcome = in_background(lambda: world.deliver("guide"))
    until(lambda: world.documents.get("guide").state is DocumentState.INDEXING)
    assert world.deliver("guide") is IngestOutcome.POSTPONED
    thread.join()
    assert outcome == [IngestOutcome.INDEXED]
    assert world.paid_twice() == 0
    postponed = world.sender.sent[-1]
    assert isinstance(postponed.message, IngestDocument)
    assert postponed.message.continuation == 1
    assert 0 < postponed.delay_seconds <= 60
    assert world.deliver(postponed.message) is IngestOutcome.CURRENT


def test_a_document_held_through_every_round_is_left_to_its_receives(world: World) -> None:
    document = world.approve("guide", prose(2))
    world.documents.claim(document, "someone else", 60)
    with pytest.raises(BusyError):
        world.deliver(IngestDocument(document_id="guide", version=1, continuation=15))


def test_a_consumer_that_was_killed_is_waited_for_no_longer_than_its_lease(world: World) -> None:
    document = world.approve("guide", prose(2))
    world.documents.claim(document, "killed", 0.0)
    assert world.deliver("guide") is IngestOutcome.INDEXED


def test_an_older_version_is_dropped_when_a_newer_one_is_approved(world: World) -> None:
    world.approve("guide", prose(2, seed="first"))
    older = world.message("guide")
    world.index_document("guide", prose(3, seed="second"))
    assert world.deliver(older) is IngestOutcome.STALE
    entry = world.index.entry("guide")
    assert entry is not None
    assert (entry.version, entry.chunks) == (2, 3)


def test_an_older_version_still_at_work_never_overwrites_a_newer_one(world: World) -> None:
    world.approve("guide", prose(6, seed="first"))
    older = world.message("guide")
    world.llm.latency_seconds = 0.3
    thread, outcome = in_background(lambda: world.deliver(older))
    until(lambda: world.received().get("responses", 0) > 0)
    world.approve("guide", prose(2, seed="second"))
    assert world.deliver("guide") is IngestOutcome.INDEXED
    thread.join()
    assert outcome == [IngestOutcome.STALE]
    entry = world.index.entry("guide")
    assert entry is not None
    assert (entry.version, world.index.count_chunks()) == (2, 2)


def test_a_withdrawn_document_leaves_search_and_comes_back_for_free(world: World) -> None:
    world.index_document("guide", prose(3))
    world.llm.calls.reset()
    withdraw_document(world.documents, world.sender, document_id="guide")
    assert world.deliver("guide") is IngestOutcome.REMOVED
    assert world.deliver("guide") is IngestOutcome.CURRENT
    assert world.index.count_chunks() == 0
    approve_document(world.documents, world.sender, document_id="guide")
    assert world.deliver("guide") is IngestOutcome.INDEXED
    assert (world.index.count_chunks(), world.received()) == (3, {})


def test_what_was_never_approved_cannot_be_withdrawn(world: World) -> None:
    upsert_document(world.documents, document_id="draft", title="Draft", content="text")
    with pytest.raises(InvalidStateError):
        withdraw_document(world.documents, world.sender, document_id="draft")
    with pytest.raises(NotFoundError):
        withdraw_document(world.documents, world.sender, document_id="nothing")


def test_versions_count_changes_and_only_the_latest_can_be_approved(world: World) -> None:
    first = upsert_document(world.documents, document_id="guide", title="Guide", content="one")
    same = upsert_document(world.documents, document_id="guide", title="Guide", content="one")
    second = upsert_document(world.documents, document_id="guide", title="Guide", content="two")
    assert [first.version, same.version, second.version] == [1, 1, 2]
    with pytest.raises(ConflictError, match="approve version 2"):
        approve_document(world.documents, world.sender, document_id="guide", version=1)


def test_two_that_edit_at_once_make_two_versions(world: World) -> None:
    upsert_document(world.documents, document_id="guide", title="Guide", content="zero")
    barrier = threading.Barrier(4)

    def edit(text: str) -> int:
        barrier.wait()
        return upsert_document(world.documents, document_id="guide", title="Guide", content=text).version

    started = [in_background(lambda text=text: edit(text)) for text in ("one", "two", "three", "four")]
    for thread, _ in started:
        thread.join()
    assert sorted(outcome[0] for _, outcome in started) == [2, 3, 4, 5]


def test_a_failed_enqueue_leaves_the_approval_and_the_next_call_repairs_it(world: World) -> None:
    world.sender.fail_with = DependencyError("no queue")
    assert world.approve("guide", prose(1)).state is DocumentState.APPROVED
    assert world.sender.sent == []
    world.sender.fail_with = None
    repaired = approve_document(world.documents, world.sender, document_id="guide")
    assert (repaired.state, repaired.revision) == (DocumentState.QUEUED, 1)
    assert len(world.sender.sent) == 1


def test_out_of_time_the_work_is_kept_and_handed_on(world: World) -> None:
    world.approve("guide", prose(40))
    world.llm.latency_seconds = 0.4
    rounds = 0
    outcome = world.deliver("guide", remaining_seconds=lambda: 66.0)
    while outcome is IngestOutcome.CONTINUED:
        rounds += 1
        outcome = world.deliver(world.message("guide"), remaining_seconds=lambda: 66.0)
    assert outcome is IngestOutcome.INDEXED
    assert rounds >= 1
    assert world.message("guide").continuation == rounds
    assert world.paid_twice() == 0


def test_work_that_never_gets_done_in_time_ends_in_its_receives(world: World) -> None:
    world.approve("guide", prose(2))
    last = IngestDocument(document_id="guide", version=1, continuation=15)
    with pytest.raises(TransientError):
        world.deliver(last, remaining_seconds=lambda: 1.0, last_receive=True)
    assert world.documents.get("guide").state is DocumentState.FAILED


def test_a_rate_limit_holds_every_call_for_as_long_as_it_says(world: World) -> None:
    world.approve("guide", prose(10))
    world.llm.faults.add(Fault(kind="rate_limit", count=3, retry_after_seconds=1.0))
    assert world.deliver("guide") is IngestOutcome.INDEXED
    assert world.paid_twice() == 0
    # Eight calls were under way when the limit struck; later ones waited instead of asking again.
    assert sum(world.received().values()) <= 11 + 3


def test_a_rate_limit_longer_than_the_function_is_handed_on_with_that_delay(world: World) -> None:
    world.approve("guide", prose(2))
    world.llm.faults.add(Fault(kind="rate_limit", retry_after_seconds=300))
    assert world.deliver("guide", remaining_seconds=lambda: 100.0) is IngestOutcome.CONTINUED
    assert 250 < world.sender.sent[-1].delay_seconds <= 300


def test_an_account_without_money_fails_at_once_and_says_so(world: World) -> None:
    world.approve("guide", prose(30))
    world.llm.faults.add(Fault(kind="insufficient_quota"))
    with pytest.raises(QuotaExhaustedError):
        world.deliver("guide")
    assert sum(world.received().values()) <= 8
    failure = world.documents.get("guide").failure
    assert failure is not None
    assert failure.code == "quota_exhausted"


def test_a_model_that_is_down_is_transient_and_what_was_paid_for_stays(world: World) -> None:
    world.approve("guide", prose(12))
    world.llm.faults.add(Fault(kind="server_error", on=("responses",), match="alpha7word"))
    with pytest.raises(DependencyError):
        world.deliver("guide")
    document = world.documents.get("guide")
    assert document.state is DocumentState.QUEUED
    assert document.failure is not None
    world.llm.faults.clear()
    assert world.deliver("guide") is IngestOutcome.INDEXED
    assert world.paid_twice() == 0


def test_a_passage_the_model_refuses_fails_its_document_with_the_passage(world: World) -> None:
    world.approve("guide", prose(3))
    world.llm.faults.add(Fault(kind="refusal", match="alpha1word"))
    with pytest.raises(MalformedDocumentError, match="passage 2"):
        world.deliver("guide")
    failure = world.documents.get("guide").failure
    assert failure is not None
    assert failure.code == "chunk_refused"


def test_an_answer_cut_off_is_asked_for_again_with_more_room(world: World) -> None:
    world.approve("guide", prose(1))
    world.llm.faults.add(Fault(kind="truncated", count=1))
    assert world.deliver("guide") is IngestOutcome.INDEXED
    assert world.received()["responses"] == 2


def test_a_failed_document_is_tried_again_when_it_is_approved_again(world: World) -> None:
    world.approve("guide", prose(2))
    world.llm.faults.add(Fault(kind="insufficient_quota"))
    with pytest.raises(QuotaExhaustedError):
        world.deliver("guide")
    world.llm.faults.clear()
    approve_document(world.documents, world.sender, document_id="guide")
    assert world.deliver("guide") is IngestOutcome.INDEXED
    assert world.documents.get("guide").failure is None


def test_stopped_between_index_and_document_the_next_delivery_only_says_so(world: World) -> None:
    world.index_document("guide", prose(2))
    document = world.documents.get("guide")
    world.documents.mark(document, DocumentState.INDEXING, indexedAt=None)
    calls = world.received()
    assert world.deliver("guide") is IngestOutcome.CURRENT
    assert world.documents.get("guide").state is DocumentState.INDEXED
    assert world.received() == calls
