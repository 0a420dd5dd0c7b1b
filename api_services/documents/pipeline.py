"""From chunks to what the index takes: what was paid for before is found again, the rest is asked for side by side."""

import contextvars
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import islice
from typing import Final

from api_services.documents.calls import RateGate, StoppedError, patiently
from api_services.documents.chunking import Chunk, token_bound
from api_services.documents.embedding import Embedder, batches
from api_services.documents.enrichment import PROMPT_VERSION, Enricher, Enrichment
from api_services.documents.errors import MalformedDocumentError
from api_services.documents.index.base import IndexedChunk
from api_services.documents.repository import ChunkResultRepository
from api_services.errors import PermanentError, QuotaExhaustedError

CONCURRENCY: Final = 8
TICK_SECONDS: Final = 1.0

logger = logging.getLogger(__name__)

Progress = Callable[[int, int], None]
"""Called with chunks done and all chunks, about every second; may raise to end the work."""


@dataclass(frozen=True, slots=True)
class Work:
    """One call to make: its chunks, and what gives their results by key."""

    chunks: tuple[Chunk, ...]
    call: Callable[[float], dict[str, bytes]]


class ChunkCompleter:
    """Finds or makes vector and enrichment of chunks, at most `concurrency` calls at a time."""

    def __init__(
        self,
        results: ChunkResultRepository,
        embedder: Embedder,
        enricher: Enricher,
        *,
        concurrency: int = CONCURRENCY,
    ) -> None:
        self._results = results
        self._embedder = embedder
        self._enricher = enricher
        self._concurrency = concurrency

    def complete(self, chunks: Sequence[Chunk], *, deadline: float, progress: Progress) -> list[IndexedChunk]:
        """Every chunk with its results; `deadline` is a moment of `time.monotonic`.

        Each result is kept as soon as it is there, also when this ends early. Raises `OutOfTimeError`, and what the
        model raises; a chunk it refuses leaves as `MalformedDocumentError` that names it.
        """
        distinct = list({chunk.content_hash: chunk for chunk in chunks}.values())
        known = self._results.find([key for chunk in distinct for key in self._keys(chunk)])
        work = self._missing(distinct, known)
        if work:
            logger.info("documents.calls_planned", extra={"calls": len(work), "chunks": len(distinct)})
            known.update(self._run(work, len(distinct), deadline, progress))
        return [self._indexed(chunk, known) for chunk in chunks]

    def _keys(self, chunk: Chunk) -> tuple[str, str]:
        return self._embedding_key(chunk), self._enrichment_key(chunk)

    def _embedding_key(self, chunk: Chunk) -> str:
        return f"embedding:{self._embedder.model}:{self._embedder.dimension}:{chunk.content_hash}"

    def _enrichment_key(self, chunk: Chunk) -> str:
        return f"enrichment:{self._enricher.model}:{PROMPT_VERSION}:{chunk.content_hash}"

    def _missing(self, chunks: Sequence[Chunk], known: dict[str, bytes]) -> list[Work]:
        unembedded = [chunk for chunk in chunks if self._embedding_key(chunk) not in known]
        weighted = [(chunk, token_bound(chunk.embedded_text)) for chunk in unembedded]
        work = [self._embedding(tuple(batch)) for batch in batches(weighted)]
        work += [self._enrichment(chunk) for chunk in chunks if self._enrichment_key(chunk) not in known]
        return work

    def _embedding(self, chunks: tuple[Chunk, ...]) -> Work:
        def call(timeout_seconds: float) -> dict[str, bytes]:
            texts = [chunk.embedded_text for chunk in chunks]
            vectors = self._embedder.embed(texts, timeout_seconds=timeout_seconds)
            return {self._embedding_key(chunk): vector for chunk, vector in zip(chunks, vectors, strict=True)}

        return Work(chunks, call)

    def _enrichment(self, chunk: Chunk) -> Work:
        def call(timeout_seconds: float) -> dict[str, bytes]:
            enrichment = self._enricher.enrich(chunk, timeout_seconds=timeout_seconds)
            return {self._enrichment_key(chunk): enrichment.model_dump_json(by_alias=True).encode()}

        return Work((chunk,), call)

    def _run(self, work: Sequence[Work], total: int, deadline: float, progress: Progress) -> dict[str, bytes]:
        gate = RateGate()
        made: dict[str, bytes] = {}
        left = _counted(chunk.content_hash for item in work for chunk in item.chunks)
        with ThreadPoolExecutor(self._concurrency, thread_name_prefix="documents") as pool:
            try:
                pending: dict[Future[dict[str, bytes]], Work] = {}
                todo = iter(work)
                progress(total - len(left), total)
                shown = time.monotonic()
                while True:
                    # Two for each thread: none idles, and what is waited for stays a short list.
                    for item in islice(todo, 2 * self._concurrency - len(pending)):
                        pending[pool.submit(contextvars.copy_context().run, self._do, gate, deadline, item)] = item
                    if not pending:
                        break
                    done, _ = wait(pending, timeout=TICK_SECONDS, return_when=FIRST_COMPLETED)
                    for future in done:
                        item = pending.pop(future)
                        if isinstance(future.exception(), StoppedError):
                            continue  # the error that stopped it is in another future
                        made.update(future.result())
                        _count_off(left, item.chunks)
                    if time.monotonic() - shown >= TICK_SECONDS:
                        progress(total - len(left), total)
                        shown = time.monotonic()
            except BaseException:
                # Calls under way end within their timeouts and their results are kept; no other begins.
                gate.stop()
                pool.shutdown(wait=True, cancel_futures=True)
                raise
        return made

    def _do(self, gate: RateGate, deadline: float, work: Work) -> dict[str, bytes]:
        try:
            results = patiently(gate, deadline, work.call)
        except QuotaExhaustedError:
            raise
        except PermanentError as exc:
            raise _refused(exc, work.chunks) from exc
        self._results.keep(results)
        return results

    def _indexed(self, chunk: Chunk, known: dict[str, bytes]) -> IndexedChunk:
        enrichment = Enrichment.model_validate_json(known[self._enrichment_key(chunk)])
        return IndexedChunk(
            number=chunk.number,
            content_hash=chunk.content_hash,
            heading=chunk.heading,
            text=chunk.text,
            title=enrichment.title,
            summary=enrichment.summary,
            keywords=tuple(enrichment.keywords),
            questions=tuple(enrichment.questions),
            vector=known[self._embedding_key(chunk)],
        )


def _counted(hashes: Iterable[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for content_hash in hashes:
        counts[content_hash] = counts.get(content_hash, 0) + 1
    return counts


def _count_off(left: dict[str, int], chunks: Sequence[Chunk]) -> None:
    for chunk in chunks:
        left[chunk.content_hash] -= 1
        if left[chunk.content_hash] == 0:
            del left[chunk.content_hash]


def _refused(error: PermanentError, chunks: Sequence[Chunk]) -> PermanentError:
    """Name the passage the model will never answer for; a key or setting that is refused stays what it is."""
    if error.code == "llm_unauthorized":
        return error
    where = f"passage {chunks[0].number + 1}" if len(chunks) == 1 else f"one of {len(chunks)} passages"
    return MalformedDocumentError(
        f"the model does not take {where} ({error.message}); change the text there, or approve again",
        code=f"chunk_{error.code}",
    )
