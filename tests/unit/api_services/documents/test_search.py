import pytest
from hypothesis import given
from hypothesis import strategies as st

from api_services.documents.embedding import (
    MAX_BATCH_INPUTS,
    MAX_BATCH_TOKENS,
    batches,
    dimension_of,
)
from api_services.documents.enrichment import Enrichment
from api_services.documents.index.base import Candidate
from api_services.documents.search import SNIPPET_CHARS, fuse, snippet
from api_services.errors import ConfigurationError
from api_services.llm.schemas import strict_schema


def test_what_both_rankings_name_comes_before_what_only_one_does() -> None:
    by_text = [Candidate(1, 9.0), Candidate(2, 8.0)]
    by_vector = [Candidate(3, 0.9), Candidate(2, 0.8)]
    assert [chunk_id for chunk_id, _ in fuse(by_text, by_vector)] == [2, 1, 3]


def test_equal_scores_have_one_order() -> None:
    assert fuse([Candidate(7, 1.0)], [Candidate(5, 1.0)]) == [(5, 1 / 61), (7, 1 / 61)]


words = st.lists(st.sampled_from(["alpha", "beta", "gamma", "\u00e9t\u00e9", "\U0001f469", "x" * 90]), max_size=200)


@given(words, st.lists(st.sampled_from(["alpha", "\u00e9t\u00e9", "zeta"]), max_size=3))
def test_highlights_are_the_terms_in_order_within_the_snippet(text_words: list[str], terms: list[str]) -> None:
    text = " ".join(text_words)
    cut, marks = snippet(text, terms)
    assert cut in text
    assert len(cut) <= SNIPPET_CHARS
    end = 0
    for start, stop in marks:
        assert end <= start < stop <= len(cut)
        assert cut[start:stop] in terms
        end = stop


def test_a_snippet_shows_the_place_with_most_of_the_terms() -> None:
    text = "alpha " + "filler " * 200 + "alpha beta together " + "filler " * 50
    cut, marks = snippet(text, ["alpha", "beta"])
    assert [cut[start:stop] for start, stop in marks] == ["alpha", "beta"]


def test_accents_and_case_do_not_hide_a_term() -> None:
    cut, marks = snippet("Uma AVALIA\u00c7\u00c3O final", ["avaliacao"])
    assert [cut[start:stop] for start, stop in marks] == ["AVALIA\u00c7\u00c3O"]


@given(st.lists(st.integers(1, MAX_BATCH_TOKENS), max_size=300))
def test_batches_keep_order_and_both_bounds(weights: list[int]) -> None:
    made = list(batches([(number, weight) for number, weight in enumerate(weights)]))
    assert [number for batch in made for number in batch] == list(range(len(weights)))
    for batch in made:
        assert len(batch) <= MAX_BATCH_INPUTS
        assert sum(weights[number] for number in batch) <= MAX_BATCH_TOKENS


def test_a_model_whose_dimension_is_not_known_is_refused_by_name() -> None:
    assert dimension_of("text-embedding-3-large") == 3072
    with pytest.raises(ConfigurationError, match="no-such-model"):
        dimension_of("no-such-model")


def test_the_enrichment_is_a_schema_that_strict_mode_takes() -> None:
    assert strict_schema(Enrichment)["additionalProperties"] is False


def test_an_enrichment_is_bounded_whatever_the_model_wrote() -> None:
    wild = Enrichment(
        title="x\n" * 500, summary="s\u0000" * 5_000, keywords=["a,b", "a,b", ""] * 20, questions=["q"] * 99
    )
    tame = wild.bounded()
    assert len(tame.title) <= 200
    assert len(tame.summary) <= 1_000
    assert "\u0000" not in tame.summary
    assert tame.keywords == ["a b"]
    assert tame.questions == ["q"]
