"""Search over the index: full text and vectors, fused by reciprocal rank."""

import re
import unicodedata
from collections.abc import Sequence
from typing import Final

from api_services.documents.embedding import Embedder
from api_services.documents.index.base import Candidate, FoundChunk, SearchIndex
from api_services.documents.models import MAX_PAGE, MAX_QUERY_CHARS, SearchHit, SearchPage
from api_services.documents.normalise import normalise_text
from api_services.errors import InvalidInputError

CANDIDATES: Final = 200
"""Per way of searching; also how deep paging can go."""

RANK_CONSTANT: Final = 60
"""k of reciprocal rank fusion as its authors measured it (Cormack, Clarke, Buettcher 2009)."""

MAX_DOCUMENT_IDS: Final = 100
MAX_TERMS: Final = 16
SNIPPET_CHARS: Final = 240
EMBED_TIMEOUT_SECONDS: Final = 10.0

_WORD: Final = re.compile(r"\w+")


def search(
    index: SearchIndex,
    embedder: Embedder,
    *,
    query: str,
    document_ids: Sequence[str] = (),
    limit: int = 10,
    cursor: str | None = None,
) -> SearchPage:
    """The chunks that answer `query` best; `cursor` is the previous page's `next_cursor`.

    Pays for one embedding. Raises `InvalidInputError` for a blank or too long query, a limit outside 1..100, more than
    100 document ids or a cursor that isn't one; else what the index and the embedding model raise.
    """
    text = normalise_text(query).text.strip()
    if not text:
        raise InvalidInputError("a query needs at least one character that is not blank")
    if len(text) > MAX_QUERY_CHARS:
        raise InvalidInputError(f"a query has at most {MAX_QUERY_CHARS} characters, this one {len(text)}")
    if not 1 <= limit <= MAX_PAGE:
        raise InvalidInputError(f"limit must be 1 to {MAX_PAGE}, got {limit}")
    if len(document_ids) > MAX_DOCUMENT_IDS:
        raise InvalidInputError(f"at most {MAX_DOCUMENT_IDS} documents can be named, got {len(document_ids)}")
    start = _offset(cursor)
    terms = list(dict.fromkeys(folded(word) for word in _WORD.findall(text)))[:MAX_TERMS]
    by_text = index.text_candidates(terms, document_ids, CANDIDATES) if terms else []
    (vector,) = embedder.embed([text], timeout_seconds=EMBED_TIMEOUT_SECONDS)
    by_vector = index.vector_candidates(vector, document_ids, CANDIDATES)
    ranked = fuse(by_text, by_vector)
    wanted = ranked[start : start + limit]
    found = index.chunks([chunk_id for chunk_id, _ in wanted])
    hits = tuple(_hit(found[chunk_id], score, terms) for chunk_id, score in wanted if chunk_id in found)
    following = start + limit
    return SearchPage(query=text, hits=hits, next_cursor=str(following) if following < len(ranked) else None)


def fuse(*rankings: Sequence[Candidate]) -> list[tuple[int, float]]:
    """Chunk ids with the sum of `1 / (60 + rank)` over `rankings`, best first; equal sums in the order of ids."""
    scores: dict[int, float] = {}
    for ranking in rankings:
        for rank, candidate in enumerate(ranking, start=1):
            scores[candidate.chunk_id] = scores.get(candidate.chunk_id, 0.0) + 1 / (RANK_CONSTANT + rank)
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))


def folded(word: str) -> str:
    """Without case and accents, as the full-text index compares words."""
    return "".join(c for c in unicodedata.normalize("NFKD", word.casefold()) if not unicodedata.combining(c))


def snippet(text: str, terms: Sequence[str]) -> tuple[str, tuple[tuple[int, int], ...]]:
    """The part of `text`, up to 240 characters, with most of `terms`, and where they are in it."""
    wanted = {folded(term) for term in terms}
    words = [match for match in _WORD.finditer(text) if folded(match.group()) in wanted]
    start, best = 0, 0
    for number, first in enumerate(words):
        inside = {
            folded(word.group()) for word in words[number:] if word.end() - first.start() <= SNIPPET_CHARS * 3 // 4
        }
        if len(inside) > best:
            start, best = max(0, first.start() - SNIPPET_CHARS // 6), len(inside)
    start = _word_start(text, start)
    end = min(len(text), start + SNIPPET_CHARS)
    while end < len(text) and end > start + SNIPPET_CHARS // 2 and not text[end].isspace():
        end -= 1
    cut = text[start:end].rstrip()
    marks = tuple(
        (word.start() - start, word.end() - start)
        for word in words
        if word.start() >= start and word.end() <= start + len(cut)
    )
    return cut, marks


def _word_start(text: str, start: int) -> int:
    """Move right to the next word's beginning, so that no word is cut."""
    if start == 0:
        return 0
    for position in range(start, min(len(text), start + 40)):
        if text[position - 1].isspace() and not text[position].isspace():
            return position
    return start


def _offset(cursor: str | None) -> int:
    if cursor is None:
        return 0
    if not re.fullmatch(r"[0-9]{1,4}", cursor):
        raise InvalidInputError("the cursor is not one this search gave out; begin without one")
    return int(cursor)


def _hit(chunk: FoundChunk, score: float, terms: Sequence[str]) -> SearchHit:
    text, highlights = snippet(chunk.text, terms)
    return SearchHit(
        document_id=chunk.document_id,
        version=chunk.version,
        document_title=chunk.document_title,
        chunk_number=chunk.number,
        heading=chunk.heading,
        title=chunk.title,
        summary=chunk.summary,
        keywords=chunk.keywords,
        snippet=text,
        highlights=highlights,
        score=score,
    )
