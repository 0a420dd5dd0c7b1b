"""The search index in libSQL's SQL, for any driver.

A generation is one write of one document. Its rows are staged first, unseen, in transactions short enough to hold the
writer for milliseconds; one more transaction turns the document to it and takes the earlier ones out of search. A
generation that fits one batch does all of this in one transaction.
"""

import json
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final, cast

from api_services.documents.errors import IndexBusyError, IndexMismatchError, IndexUnavailableError
from api_services.documents.index.base import Candidate, FoundChunk, IndexedChunk, IndexEntry, SearchIndex
from api_services.documents.index.driver import DEFAULT_WAIT_SECONDS, IndexDriver, Row, Statement
from api_services.documents.index.schema import SCHEMA_VERSION, schema

TEXT_ROWS: Final = 5_000
"""Ranking costs 0.6 us a matching row: the rarest words of a query are taken until they match so many."""

RERANKED: Final = 200
"""Of the nearest by sign bits, compared again by full vectors: recall@10 of 1.00 over 50,000 chunks."""

ORPHAN_AGE_SECONDS: Final = 3_600
"""Older than any function runs: rows staged so long ago belong to a writer that is gone."""

ENTRY_PAGE: Final = 1_000

_BM25: Final = "bm25(chunks_fts, 3.0, 1.0, 4.0, 2.0, 3.0, 2.0)"
"""Weights of heading, text, title, summary, keywords, questions."""

_IN_DOCUMENTS: Final = "SELECT chunk_id FROM chunks WHERE document_id IN (SELECT value FROM json_each(?2))"

_FLIP: Final = """
INSERT INTO documents (document_id, title, version, revision, generation, chunks, removed)
SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7
WHERE (SELECT count(*) FROM chunks WHERE document_id = ?1 AND generation = ?5) = ?6
ON CONFLICT (document_id) DO UPDATE SET title = excluded.title, version = excluded.version,
  revision = excluded.revision, generation = excluded.generation, chunks = excluded.chunks, removed = excluded.removed
WHERE excluded.revision >= documents.revision
"""

_CURRENT: Final = "(SELECT generation FROM documents WHERE document_id = ?1)"

_UNSEE: Final = f"""
DELETE FROM bits WHERE chunk_id IN (SELECT chunk_id FROM chunks WHERE document_id = ?1 AND generation <> {_CURRENT})
"""  # noqa: S608  (constants only)

_SEE: Final = f"""
INSERT OR IGNORE INTO bits (chunk_id, embedding)
SELECT chunk_id, vector1bit(embedding) FROM chunks JOIN vectors USING (chunk_id)
WHERE document_id = ?1 AND generation = {_CURRENT}
"""  # noqa: S608

_CLEAN: Final = f"""
DELETE FROM chunks WHERE chunk_id IN
  (SELECT chunk_id FROM chunks WHERE document_id = ?1 AND generation <> {_CURRENT} LIMIT ?2)
"""  # noqa: S608

_OUTCOME: Final = f"""
SELECT generation, revision, (SELECT count(*) FROM chunks WHERE document_id = ?1 AND generation <> {_CURRENT})
FROM documents WHERE document_id = ?1
"""  # noqa: S608

_ENTRY: Final = "SELECT document_id, version, revision, chunks, removed FROM documents"


class LibsqlSearchIndex(SearchIndex):
    """Tables `meta`, `documents`, `chunks`, `chunks_fts`, `vectors` and `bits`; see `schema`."""

    def __init__(
        self, driver: IndexDriver, *, model: str, dimension: int, now: Callable[[], float] = time.time
    ) -> None:
        self.model = model
        self.dimension = dimension
        self._driver = driver
        self._now = now

    def check(self) -> None:
        """Create the schema where there is none; raises `IndexMismatchError` where model or dimension differ."""
        (tables,) = self._driver.read([Statement("SELECT 1 FROM sqlite_master WHERE name = 'meta'")])
        if not tables:
            # Two that start at once both create: every statement is harmless when repeated, and the first meta stays.
            self._driver.write(schema(self.model, self.dimension))
        (rows,) = self._driver.read([Statement("SELECT key, value FROM meta")])
        meta = {str(key): str(value) for key, value in rows}
        if meta.get("schema") != str(SCHEMA_VERSION):
            raise IndexMismatchError(
                f"the search index has schema {meta.get('schema')}, this code needs {SCHEMA_VERSION}; "
                "point INDEX_URL at a new database and let the reconciler fill it"
            )
        if (meta["model"], meta["dimension"]) != (self.model, str(self.dimension)):
            raise IndexMismatchError(
                f"the search index holds {meta['dimension']} dimensions of {meta['model']}, the configured model "
                f"{self.model} gives {self.dimension}; set EMBEDDING_MODEL back, or point INDEX_URL at a new database "
                "and let the reconciler fill it"
            )

    def entry(self, document_id: str) -> IndexEntry | None:
        """What the index holds of the document."""
        (rows,) = self._driver.read([Statement(f"{_ENTRY} WHERE document_id = ?1", (document_id,))])
        return _entry(rows[0]) if rows else None

    def entries(self) -> Iterator[IndexEntry]:
        """Every entry, in the order of document ids."""
        after = ""
        while True:
            statement = Statement(f"{_ENTRY} WHERE document_id > ?1 ORDER BY document_id LIMIT ?2", (after, ENTRY_PAGE))
            (rows,) = self._driver.read([statement])
            for row in rows:
                yield _entry(row)
            if len(rows) < ENTRY_PAGE:
                return
            after = str(rows[-1][0])

    def replace(
        self,
        *,
        document_id: str,
        title: str,
        version: int,
        revision: int,
        chunks: Sequence[IndexedChunk],
        wait_seconds: float = DEFAULT_WAIT_SECONDS,
    ) -> bool:
        """Make `chunks` the document's only generation; False, nothing changed, where a later revision is there."""
        deadline = time.monotonic() + wait_seconds
        generation = secrets.token_hex(8)
        *staged, last = self._batches(document_id, generation, chunks)
        for batch in staged:
            self._driver.write(batch, wait_seconds=max(0.0, deadline - time.monotonic()))
        turn = (document_id, title, version, revision, generation, len(chunks), 0)
        return self._turn(turn, last, deadline)

    def remove(
        self, *, document_id: str, version: int, revision: int, wait_seconds: float = DEFAULT_WAIT_SECONDS
    ) -> bool:
        """Take the document out; False, nothing changed, where a later revision is there."""
        turn = (document_id, "", version, revision, secrets.token_hex(8), 0, 1)
        return self._turn(turn, [], time.monotonic() + wait_seconds)

    def _turn(
        self, turn: tuple[str, str, int, int, str, int, int], staged: Sequence[Statement], deadline: float
    ) -> bool:
        document_id, revision, generation = turn[0], turn[3], turn[4]
        clean = Statement(_CLEAN, (document_id, self._driver.max_batch_rows))
        outcome = Statement(_OUTCOME, (document_id,))
        by_id = (document_id,)
        statements = [
            *staged, Statement(_FLIP, turn), Statement(_UNSEE, by_id), Statement(_SEE, by_id), clean, outcome,
        ]  # fmt: skip
        rows = self._driver.write(statements, wait_seconds=max(0.0, deadline - time.monotonic()))[-1]
        while rows and cast(int, rows[0][2]) > 0:
            rows = self._driver.write([clean, outcome], wait_seconds=max(0.0, deadline - time.monotonic()))[-1]
        if rows and rows[0][0] == generation:
            return True
        if rows and cast(int, rows[0][1]) > revision:
            return False
        raise IndexBusyError(
            f"another writer of '{document_id}' came between; the call can be repeated", document_id=document_id
        )

    def _batches(self, document_id: str, generation: str, chunks: Sequence[IndexedChunk]) -> list[list[Statement]]:
        """Insert statements in batches within the driver's bounds; at least one, maybe empty."""
        staged: list[list[Statement]] = [[]]
        size = rows = 0
        for chunk in chunks:
            weight = len(chunk.vector) + 2 * len(chunk.text)
            if rows and (rows >= self._driver.max_batch_rows or size + weight > self._driver.max_batch_bytes):
                staged.append([])
                size = rows = 0
            staged[-1].extend(self._inserts(document_id, generation, chunk))
            size += weight
            rows += 1
        return staged

    def _inserts(self, document_id: str, generation: str, chunk: IndexedChunk) -> tuple[Statement, Statement]:
        if len(chunk.vector) != 4 * self.dimension:
            raise IndexMismatchError(
                f"a vector has {len(chunk.vector) // 4} dimensions, the search index {self.dimension}; check "
                "EMBEDDING_MODEL"
            )
        row = (
            document_id, generation, chunk.number, chunk.content_hash, chunk.heading, chunk.text, chunk.title,
            chunk.summary, ", ".join(chunk.keywords), "\n".join(chunk.questions), int(self._now()),
        )  # fmt: skip
        return (
            Statement(
                "INSERT INTO chunks (document_id, generation, number, content_hash, heading, text, title, summary, "
                "keywords, questions, written_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
                row,
            ),
            Statement(
                "INSERT INTO vectors (chunk_id, embedding) SELECT chunk_id, ?4 FROM chunks "
                "WHERE document_id = ?1 AND generation = ?2 AND number = ?3",
                (document_id, generation, chunk.number, chunk.vector),
            ),
        )

    def sweep_orphans(self) -> int:
        """Remove chunks of generations that no document names; their number."""
        before = int(self._now()) - ORPHAN_AGE_SECONDS
        orphan = (
            "SELECT c.chunk_id FROM chunks c LEFT JOIN documents d "
            "ON d.document_id = c.document_id AND d.generation = c.generation "
            "WHERE d.document_id IS NULL AND c.written_at < ?1 LIMIT ?2"
        )
        statement = Statement(
            f"DELETE FROM chunks WHERE chunk_id IN ({orphan}) RETURNING 1",  # noqa: S608
            (before, self._driver.max_batch_rows),
        )
        swept = 0
        while rows := self._driver.write([statement])[0]:
            swept += len(rows)
        return swept

    def count_chunks(self) -> int:
        """Chunks of all current generations."""
        (rows,) = self._driver.read([Statement("SELECT count(*) FROM bits")])
        return cast(int, rows[0][0])

    def text_candidates(self, terms: Sequence[str], document_ids: Sequence[str], limit: int) -> list[Candidate]:
        """The best by full text for any of `terms`; of `document_ids` only, where there are some."""
        phrases = [_phrase(term) for term in terms]
        counting = "SELECT count(*) FROM (SELECT 1 FROM chunks_fts WHERE chunks_fts MATCH ?1 LIMIT ?2)"
        counted = self._driver.read([Statement(counting, (phrase, TEXT_ROWS + 1)) for phrase in phrases])
        rarest = sorted((cast(int, rows[0][0]), phrase) for rows, phrase in zip(counted, phrases, strict=True))
        chosen: list[str] = []
        matched = 0
        for count, phrase in rarest:
            if count and (not chosen or matched + count <= TEXT_ROWS):
                chosen.append(phrase)
                matched += count
        if not chosen:
            return []
        only = f"AND f.rowid IN ({_IN_DOCUMENTS})" if document_ids else ""
        # Where even the rarest word matches more, it tells little: so many of its passages are ranked, and no more.
        sql = f"""
        SELECT m.id, -m.score FROM
          (SELECT f.rowid AS id, {_BM25} AS score FROM chunks_fts f
           WHERE chunks_fts MATCH ?1 {only} LIMIT {TEXT_ROWS}) m
        JOIN bits b ON b.chunk_id = m.id ORDER BY m.score, m.id LIMIT ?3
        """  # noqa: S608
        args = (" OR ".join(chosen), json.dumps(list(document_ids)), limit)
        return _candidates(self._driver.read([Statement(sql, args)])[0])

    def vector_candidates(self, vector: bytes, document_ids: Sequence[str], limit: int) -> list[Candidate]:
        """The nearest by cosine; of `document_ids` only, where there are some."""
        if len(vector) != 4 * self.dimension:
            raise IndexMismatchError(
                f"the query's vector has {len(vector) // 4} dimensions, the search index {self.dimension}"
            )
        only = f"WHERE chunk_id IN ({_IN_DOCUMENTS})" if document_ids else ""
        sql = f"""
        WITH query (sign) AS MATERIALIZED (SELECT vector1bit(?1)), near AS MATERIALIZED
          (SELECT chunk_id FROM
            (SELECT chunk_id, vector_distance_cos(embedding, sign) AS distance FROM bits, query {only}
             ORDER BY distance LIMIT max(?3, {RERANKED})))
        SELECT chunk_id, 1 - vector_distance_cos(embedding, ?1) AS score FROM near JOIN vectors USING (chunk_id)
        ORDER BY score DESC, chunk_id LIMIT ?3
        """  # noqa: S608
        args = (vector, json.dumps(list(document_ids)), limit)
        return _candidates(self._driver.read([Statement(sql, args)])[0])

    def chunks(self, chunk_ids: Sequence[int]) -> dict[int, FoundChunk]:
        """The chunks of those ids that are still there."""
        sql = """
        SELECT c.chunk_id, c.document_id, d.title, d.version, c.number, c.heading, c.text, c.title, c.summary,
          c.keywords
        FROM chunks c JOIN documents d ON d.document_id = c.document_id AND d.generation = c.generation
        WHERE c.chunk_id IN (SELECT value FROM json_each(?1))
        """
        (rows,) = self._driver.read([Statement(sql, (json.dumps(list(chunk_ids)),))])
        return {found.chunk_id: found for found in map(_found, rows)}

    def close(self) -> None:
        """Let go of connections."""
        self._driver.close()


def _phrase(term: str) -> str:
    quoted = term.replace('"', '""')
    return f'"{quoted}"'


def _candidates(rows: Sequence[Row]) -> list[Candidate]:
    return [Candidate(cast(int, chunk_id), cast(float, score)) for chunk_id, score in rows]


def _entry(row: Row) -> IndexEntry:
    document_id, version, revision, chunks, removed = row
    if not (isinstance(version, int) and isinstance(revision, int) and isinstance(chunks, int)):
        raise IndexUnavailableError("the search index answered with a row this code does not know")
    return IndexEntry(
        document_id=str(document_id), version=version, revision=revision, chunks=chunks, removed=bool(removed)
    )


def _found(row: Row) -> FoundChunk:
    chunk_id, document_id, document_title, version, number, heading, text, title, summary, keywords = row
    return FoundChunk(
        chunk_id=cast(int, chunk_id),
        document_id=str(document_id),
        document_title=str(document_title),
        version=cast(int, version),
        number=cast(int, number),
        heading=str(heading),
        text=str(text),
        title=str(title),
        summary=str(summary),
        keywords=tuple(word for word in str(keywords).split(", ") if word),
    )
