"""The search index as its users see it; `sql` keeps it in libSQL."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedChunk:
    """One chunk ready to be written. `vector` is little-endian float32 of the index's dimension."""

    number: int
    content_hash: str
    heading: str
    text: str
    title: str
    summary: str
    keywords: tuple[str, ...]
    questions: tuple[str, ...]
    vector: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexEntry:
    """What the index holds of one document. A removed document keeps one, so that older orders are known."""

    document_id: str
    version: int
    revision: int
    chunks: int
    removed: bool


@dataclass(frozen=True, slots=True)
class Candidate:
    """A chunk found by one way of searching, best first; `score` is that way's own."""

    chunk_id: int
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundChunk:
    """A chunk as it is shown."""

    chunk_id: int
    document_id: str
    document_title: str
    version: int
    number: int
    heading: str
    text: str
    title: str
    summary: str
    keywords: tuple[str, ...]


class SearchIndex(ABC):
    """Documents' chunks with full text and vectors. Readers see one whole generation of a document, or none.

    Every method raises `IndexBusyError` when another writer outlasts the bounded wait, `IndexUnavailableError` when
    the database doesn't answer, and `IndexAccessError` where URL or token is wrong.
    """

    model: str
    dimension: int

    @abstractmethod
    def check(self) -> None:
        """Create the schema where there is none; raises `IndexMismatchError` where model or dimension differ."""

    @abstractmethod
    def entry(self, document_id: str) -> IndexEntry | None:
        """What the index holds of the document."""

    @abstractmethod
    def entries(self) -> Iterator[IndexEntry]:
        """Every entry, in the order of document ids."""

    @abstractmethod
    def replace(
        self,
        *,
        document_id: str,
        title: str,
        version: int,
        revision: int,
        chunks: Sequence[IndexedChunk],
        wait_seconds: float = 20.0,
    ) -> bool:
        """Make `chunks` the document's only generation; False, nothing changed, where a later revision is there."""

    @abstractmethod
    def remove(self, *, document_id: str, version: int, revision: int, wait_seconds: float = 20.0) -> bool:
        """Take the document out; False, with nothing changed, where a later revision is there."""

    @abstractmethod
    def sweep_orphans(self) -> int:
        """Remove chunks of generations that no document names; their number."""

    @abstractmethod
    def count_chunks(self) -> int:
        """Chunks of all current generations."""

    @abstractmethod
    def text_candidates(self, terms: Sequence[str], document_ids: Sequence[str], limit: int) -> list[Candidate]:
        """The best by full text for any of `terms`; of `document_ids` only, where there are some."""

    @abstractmethod
    def vector_candidates(self, vector: bytes, document_ids: Sequence[str], limit: int) -> list[Candidate]:
        """The nearest by cosine; of `document_ids` only, where there are some."""

    @abstractmethod
    def chunks(self, chunk_ids: Sequence[int]) -> dict[int, FoundChunk]:
        """The chunks of those ids that are still there."""

    @abstractmethod
    def close(self) -> None:
        """Let go of connections."""
