"""Search as a collaborator: the index and the embedding model are opened by the first search, not at start."""

import threading
from collections.abc import Callable

from api_services.documents import search
from api_services.documents.embedding import Embedder
from api_services.documents.index.base import SearchIndex
from api_services.documents.models import SearchPage

SearchParts = tuple[SearchIndex, Embedder]


class LazySearch:
    """Opens once. A failed attempt is repeated by the next search; the rest of the API never waits for it."""

    def __init__(self, open_parts: Callable[[], SearchParts]) -> None:
        self._open = open_parts
        self._lock = threading.Lock()
        self._parts: SearchParts | None = None

    def __call__(self, *, query: str, document_ids: tuple[str, ...], limit: int, cursor: str | None) -> SearchPage:
        """As `api_services.documents.search.search`."""
        index, embedder = self._opened()
        return search.search(index, embedder, query=query, document_ids=document_ids, limit=limit, cursor=cursor)

    def close(self) -> None:
        """Let go of the index, where it was opened."""
        with self._lock:
            if self._parts is not None:
                self._parts[0].close()
                self._parts = None

    def _opened(self) -> SearchParts:
        with self._lock:
            if self._parts is None:
                self._parts = self._open()
            return self._parts
