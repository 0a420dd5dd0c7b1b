"""Opening the search index from settings. Drivers are imported when an index is opened, not before."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

from api_services.documents.embedding import dimension_of
from api_services.documents.errors import IndexAccessError
from api_services.documents.index.base import SearchIndex
from api_services.documents.index.driver import IndexDriver
from api_services.documents.settings import IndexSettings

_REMOTE = frozenset({"libsql", "turso", "https", "http"})


def index_driver(settings: IndexSettings) -> IndexDriver:
    """The driver for `INDEX_URL`: `file:<path>`, or `libsql:`, `https:` or `http:` of a server."""
    parts = urlsplit(settings.index_url)
    if parts.scheme in _REMOTE and parts.netloc:
        from api_services.documents.index.http import LibsqlHttpDriver

        token = settings.turso_auth_token.get_secret_value() if settings.turso_auth_token else None
        return LibsqlHttpDriver(settings.index_url, token)
    if parts.scheme == "file" and parts.path and not parts.netloc:
        from api_services.documents.index.libsql import LibsqlFileDriver

        return LibsqlFileDriver(Path(unquote(parts.path)))
    raise IndexAccessError("INDEX_URL must be file:<path>, or the libsql:, https: or http: URL of a libSQL server")


def open_index(settings: IndexSettings) -> SearchIndex:
    """The index, checked: raises `IndexMismatchError` where it holds another model or dimension."""
    from api_services.documents.index.sql import LibsqlSearchIndex

    model = settings.embedding_model
    index = LibsqlSearchIndex(index_driver(settings), model=model, dimension=dimension_of(model))
    index.check()
    return index
