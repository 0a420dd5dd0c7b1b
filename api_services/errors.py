"""Errors typed by what the caller should do.

    AppError                       a stable `code`, a sentence with the remedy, ids as attributes
    |-- PermanentError             no retry can help
    |   |-- InvalidInputError      the request itself is wrong
    |   |-- NotFoundError
    |   |-- ConflictError          the same key, another payload
    |   |-- InvalidStateError      not in this state
    |   `-- QuotaExhaustedError    the account is out of money; a human must act
    |-- TransientError             the same call may succeed later; `retry_after_seconds` where known
    |   |-- RateLimitedError
    |   |-- BusyError              someone else holds the work
    |   `-- DependencyError        a database, an API or a queue did not answer
    `-- ConfigurationError         the process must not start

What they mean for delivery is one table in `functions.platform`; for HTTP, one table in `api_services.http`.
"""


class AppError(Exception):
    """An error with a stable code; `message` is one sentence that names the remedy where there is one."""

    code = "error"

    def __init__(self, message: str, *, code: str | None = None, **ids: str | int | None) -> None:
        super().__init__(message)
        self.message = message
        if code is not None:
            self.code = code
        self.ids = ids


class PermanentError(AppError):
    """No retry can help."""

    code = "permanent"


class InvalidInputError(PermanentError):
    """The request itself is wrong."""

    code = "invalid_input"


class NotFoundError(PermanentError):
    """What was named does not exist."""

    code = "not_found"


class ConflictError(PermanentError):
    """The same key was used before with another payload."""

    code = "conflict"


class InvalidStateError(PermanentError):
    """The thing exists, but not in a state that allows this."""

    code = "invalid_state"


class QuotaExhaustedError(PermanentError):
    """The account is out of money or quota; a human must act first."""

    code = "quota_exhausted"


class TransientError(AppError):
    """The same call may succeed later, after `retry_after_seconds` where that is known."""

    code = "transient"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        retry_after_seconds: float | None = None,
        **ids: str | int | None,
    ) -> None:
        super().__init__(message, code=code, **ids)
        self.retry_after_seconds = retry_after_seconds


class RateLimitedError(TransientError):
    """Too many requests."""

    code = "rate_limited"


class BusyError(TransientError):
    """Someone else holds the work now."""

    code = "busy"


class DependencyError(TransientError):
    """A database, an API or a queue did not answer as it should."""

    code = "dependency_unavailable"


class ConfigurationError(AppError):
    """The process must not start like this."""

    code = "configuration"
