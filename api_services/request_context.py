"""The id that ties an HTTP request to the messages, log lines and LLM traces that follow from it."""

import secrets
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

REQUEST_ID_ATTRIBUTE = "requestId"
"""Name of the SQS message attribute."""

_request_id: ContextVar[str | None] = ContextVar("request_id", default=None)


def current_request_id() -> str | None:
    """The request id in force, if any."""
    return _request_id.get()


def new_request_id() -> str:
    """A fresh id of 32 hex digits."""
    return secrets.token_hex(16)


bind_request_id = _request_id.set
"""Puts an id in force for the rest of the current context; for runners, which copy a context for each record."""


@contextmanager
def request_context(request_id: str | None) -> Generator[None]:
    """Everything inside runs under `request_id`; what was in force before is restored after."""
    token = _request_id.set(request_id)
    try:
        yield
    finally:
        _request_id.reset(token)
