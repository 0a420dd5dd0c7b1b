"""Errors of documents and their index."""

from api_services.errors import ConfigurationError, DependencyError, PermanentError


class MalformedDocumentError(PermanentError):
    """No retry can index this version; its code says why."""

    code = "malformed_document"


class IndexMismatchError(ConfigurationError):
    """The index was built with another embedding model or dimension."""

    code = "index_mismatch"


class IndexAccessError(ConfigurationError):
    """The index's URL or token is wrong."""

    code = "index_access"


class IndexBusyError(DependencyError):
    """Another writer held the index for longer than we may wait."""

    code = "index_busy"


class IndexUnavailableError(DependencyError):
    """The index did not answer as it should."""

    code = "index_unavailable"
