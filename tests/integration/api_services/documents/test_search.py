"""Search over real text and vectors."""

import pytest

from api_services.errors import DependencyError, InvalidInputError
from local.llm.faults import Fault
from tests.integration.api_services.documents.world import World, prose

pytestmark = pytest.mark.integration


def test_pages_follow_each_other_without_gap_or_repeat(world: World) -> None:
    world.index_document("guide", prose(12))
    seen: list[tuple[str, int]] = []
    cursor: str | None = None
    while True:
        page = world.find("river works section", limit=5, cursor=cursor)
        seen += [(hit.document_id, hit.chunk_number) for hit in page.hits]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert len(seen) == len(set(seen)) == 12


def test_the_filter_shows_the_named_documents_alone(world: World) -> None:
    for name in ("one", "two", "three"):
        world.index_document(name, prose(3, seed=name))
    assert {hit.document_id for hit in world.find("river", document_ids=["one", "three"]).hits} == {"one", "three"}
    assert world.find("river", document_ids=["unknown"]).hits == ()


def test_meaning_finds_what_the_words_do_not(world: World) -> None:
    world.index_document("pay", "# Payroll\n\nSalaries are transferred on the last working day of each month.")
    world.index_document("cats", "# Cats\n\nThe office cats are fed every morning by whoever arrives first.")
    assert world.find("salary transfer").hits[0].document_id == "pay"


@pytest.mark.parametrize(
    "query",
    ['"', "* OR NEAR(", "a:b^2 -c", "'; DROP TABLE chunks; --", "\u0000river", "emoji \U0001f469\u200d\U0001f4bb"],
)
def test_no_query_is_read_as_a_command(world: World, query: str) -> None:
    world.index_document("guide", prose(2))
    world.find(query)
    assert world.index.count_chunks() == 2


@pytest.mark.parametrize(
    ("query", "options", "says"),
    [
        ("  \n", {}, "not blank"),
        ("x" * 501, {}, "500"),
        ("river", {"limit": 0}, "1 to 100"),
        ("river", {"limit": 101}, "1 to 100"),
        ("river", {"cursor": "nonsense"}, "cursor"),
        ("river", {"document_ids": ["d"] * 101}, "at most 100"),
    ],
)
def test_a_query_out_of_bounds_is_refused_before_anything_is_paid(
    world: World, query: str, options: dict[str, object], says: str
) -> None:
    with pytest.raises(InvalidInputError, match=says):
        world.find(query, **options)
    assert world.received() == {}


def test_a_search_costs_one_embedding(world: World) -> None:
    world.index_document("guide", prose(2))
    world.llm.calls.reset()
    world.find("river")
    assert world.calls() == {"embeddings": 1}


def test_a_model_that_is_down_is_said_to_be(world: World) -> None:
    world.index_document("guide", prose(2))
    world.llm.faults.add(Fault(kind="server_error", on=("embeddings",)))
    with pytest.raises(DependencyError):
        world.find("river")
