"""Documents: calls side by side, the writer's hold, and search over fifty thousand passages."""

import random
import tempfile
import time
from array import array
from collections.abc import Iterable, Iterator, Sequence
from operator import add
from pathlib import Path
from typing import Final, NamedTuple

from pydantic import SecretStr

from api_services.documents.chunking import chunk, token_bound
from api_services.documents.embedding import batches
from api_services.documents.index.base import IndexedChunk
from api_services.documents.index.driver import Row as IndexRow
from api_services.documents.index.driver import Statement
from api_services.documents.index.libsql import LibsqlFileDriver
from api_services.documents.index.sql import LibsqlSearchIndex
from api_services.documents.language_model import LanguageModelEmbedder, LanguageModelEnricher
from api_services.documents.models import DocumentFormat
from api_services.documents.pipeline import CONCURRENCY, ChunkCompleter
from api_services.documents.repository import ChunkResultRepository
from api_services.documents.search import CANDIDATES, fuse
from api_services.llm.client import OpenAILanguageModel
from api_services.mongo import connect
from api_services.settings import MongoSettings, OpenAISettings
from api_services.tracing import NoTracer
from benchmarks.documents_servers import document_servers
from benchmarks.harness import Row

LATENCY_SECONDS: Final = 0.2
DIMENSION: Final = 1536
CLUSTERS: Final = 400
WORDS: Final = 20_000


def run(quick: bool) -> Iterable[Row]:
    """The rows of `./sophia bench documents`."""
    yield from _pipeline(20 if quick else 200)
    with tempfile.TemporaryDirectory(prefix="sophia-bench-") as folder:
        yield from _write(Path(folder), 200 if quick else 1_000)
        yield from _search(Path(folder), 2_000 if quick else 50_000, 10 if quick else 100)


def _pipeline(sections: int) -> Iterator[Row]:
    """A document of so many passages against calls x latency / concurrency."""
    chunks = chunk(_document(sections), DocumentFormat.MARKDOWN)
    weighted = [(each, token_bound(each.embedded_text)) for each in chunks]
    calls = len(chunks) + sum(1 for _ in batches(weighted))
    with document_servers(LATENCY_SECONDS) as servers:
        database = connect(MongoSettings(mongo_uri=SecretStr(servers.mongo_uri), mongo_database="bench"))
        settings = OpenAISettings(openai_api_key=SecretStr("bench"), openai_base_url=f"{servers.llm_url}/v1")
        model = OpenAILanguageModel(settings, NoTracer(), calls=1)
        completer = ChunkCompleter(
            ChunkResultRepository(database),
            LanguageModelEmbedder(model, settings.embedding_model),
            LanguageModelEnricher(model, settings.enrichment_model),
        )
        warm = chunk(_document(CONCURRENCY, "warm"), DocumentFormat.MARKDOWN)
        completer.complete(warm, deadline=time.monotonic() + 600, progress=_nothing)
        began = time.monotonic()
        completer.complete(chunks, deadline=time.monotonic() + 600, progress=_nothing)
        seconds = time.monotonic() - began
        began = time.monotonic()
        completer.complete(chunks, deadline=time.monotonic() + 600, progress=_nothing)
        again = time.monotonic() - began
        database.client.close()
    floor = calls * LATENCY_SECONDS / CONCURRENCY
    floor_name = f"{calls} calls x {LATENCY_SECONDS:.1f} s / {CONCURRENCY}"
    yield Row(
        name=f"complete {len(chunks)} passages", value=seconds, unit="s", floor=floor, floor_name=floor_name, target=1.2
    )
    yield Row(name=f"the same {len(chunks)} passages again", value=again, unit="s")


def _write(folder: Path, count: int) -> Iterator[Row]:
    """How long the writer of a file is held while a document is replaced by another of the same size."""
    driver = TimedDriver(folder / "write.db")
    index = LibsqlSearchIndex(driver, model="bench", dimension=DIMENSION)
    index.check()
    maker = Maker(seed=1)
    first, second = maker.chunks(count), maker.chunks(count)
    _replace(index, "document", 1, first)
    driver.holds.clear()
    _replace(index, "document", 2, second)
    index.close()
    # One thread, and nothing in a transaction waits: processor time is what a writer is held for on a free machine.
    name = f"{count} passages replaced"
    held, clock = [hold.processor for hold in driver.holds], [hold.clock for hold in driver.holds]
    yield Row(name=f"longest hold of the writer, {name}, processor", value=max(held) * 1000, unit="ms", target=150)
    yield Row(name=f"longest hold of the writer, {name}, clock", value=max(clock) * 1000, unit="ms")
    yield Row(name=f"all {len(held)} holds, {name}, processor", value=sum(held) * 1000, unit="ms")


def _search(folder: Path, count: int, queries: int) -> Iterator[Row]:
    """Full text and vectors of one query after the other, and how many of the true ten nearest were found."""
    driver = LibsqlFileDriver(folder / "search.db")
    index = LibsqlSearchIndex(driver, model="bench", dimension=DIMENSION)
    index.check()
    maker = Maker(seed=2)
    for number in range(0, count, 1_000):
        _replace(index, f"document-{number}", 1, maker.chunks(min(1_000, count - number)))
    times: list[float] = []
    walls: list[float] = []
    exact_times: list[float] = []
    recalls: list[float] = []
    for number in range(queries):
        terms, vector = maker.words(random.Random(number).randint(2, 5)), maker.vector()  # noqa: S311
        began, wall = time.thread_time(), time.perf_counter()
        by_text = index.text_candidates(terms, [], CANDIDATES)
        by_vector = index.vector_candidates(vector, [], CANDIDATES)
        index.chunks([chunk_id for chunk_id, _ in fuse(by_text, by_vector)[:10]])
        times.append(time.thread_time() - began)
        walls.append(time.perf_counter() - wall)
        if number % 4 == 0:
            began = time.thread_time()
            exact = _exact(driver, vector)
            exact_times.append(time.thread_time() - began)
            found = {candidate.chunk_id for candidate in by_vector[:10]}
            recalls.append(len(found & exact) / len(exact))
    index.close()
    times.sort()
    walls.sort()
    name = f"text and vectors, {count:,} passages"
    last = int(queries * 0.95)
    yield Row(name=f"search, {name}: p50, processor", value=times[queries // 2] * 1000, unit="ms")
    yield Row(name=f"search, {name}: p95, processor", value=times[last] * 1000, unit="ms", target=50)
    yield Row(name=f"search, {name}: p50, clock", value=walls[queries // 2] * 1000, unit="ms")
    yield Row(name=f"search, {name}: p95, clock", value=walls[last] * 1000, unit="ms")
    yield Row(
        name=f"recall@10 of vectors, {count:,} passages",
        value=sum(recalls) / len(recalls),
        unit="of the exact ten",
        target=0.95,
        higher_is_better=True,
    )
    yield Row(
        name=f"exact scan of full vectors, {count:,} passages, processor", value=min(exact_times) * 1000, unit="ms"
    )


def _exact(driver: LibsqlFileDriver, vector: bytes) -> set[int]:
    sql = "SELECT chunk_id FROM vectors ORDER BY vector_distance_cos(embedding, ?1) LIMIT 10"
    (rows,) = driver.read([Statement(sql, (vector,))])
    return {row[0] for row in rows if isinstance(row[0], int)}


def _replace(index: LibsqlSearchIndex, document_id: str, revision: int, chunks: Sequence[IndexedChunk]) -> None:
    index.replace(document_id=document_id, title=document_id, version=revision, revision=revision, chunks=chunks)


class Hold(NamedTuple):
    """Seconds a write transaction was open."""

    processor: float
    clock: float


class TimedDriver(LibsqlFileDriver):
    """Notes how long each write transaction was open."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.holds: list[Hold] = []

    def _transaction(self, statements: Sequence[Statement]) -> list[list[IndexRow]]:
        processor, clock = time.thread_time(), time.perf_counter()
        try:
            return super()._transaction(statements)
        finally:
            self.holds.append(Hold(time.thread_time() - processor, time.perf_counter() - clock))


class Maker:
    """Passages with words as frequent as in language (Zipf) and vectors in clusters, the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)  # noqa: S311
        self._vocabulary = [f"word{number}" for number in range(WORDS)]
        self._weights = [1 / (rank + 10) for rank in range(WORDS)]
        self._centres = [self._gauss(1.0) for _ in range(CLUSTERS)]
        self._noises = [self._gauss(0.5) for _ in range(256)]

    def words(self, count: int) -> list[str]:
        return self._chance.choices(self._vocabulary, self._weights, k=count)

    def vector(self) -> bytes:
        """Near one of the centres; the sum of two noises makes each its own."""
        one, two = self._chance.choice(self._noises), self._chance.choice(self._noises)
        return array("f", map(add, map(add, self._chance.choice(self._centres), one), two)).tobytes()

    def chunks(self, count: int) -> list[IndexedChunk]:
        texts = self.words(count * 150)
        return [
            IndexedChunk(
                number=number,
                content_hash=str(number),
                heading="Handbook > Section",
                text=" ".join(texts[number * 150 : number * 150 + 120]),
                title=" ".join(texts[number * 150 + 120 : number * 150 + 126]),
                summary=" ".join(texts[number * 150 + 126 : number * 150 + 142]),
                keywords=tuple(texts[number * 150 + 142 : number * 150 + 147]),
                questions=(" ".join(texts[number * 150 + 147 : number * 150 + 150]),),
                vector=self.vector(),
            )
            for number in range(count)
        ]

    def _gauss(self, width: float) -> "array[float]":
        return array("f", [self._chance.gauss(0, width) for _ in range(DIMENSION)])


def _document(sections: int, seed: str = "bench") -> str:
    chance = random.Random(seed)  # noqa: S311
    parts: list[str] = []
    for number in range(sections):
        words = " ".join(f"{seed}{chance.randrange(9_999)}" for _ in range(110))
        parts.append(f"## Section {number}\n\n{words}.\n")
    return "\n".join(parts)


def _nothing(done: int, total: int) -> None:
    """Progress is not what is measured."""
