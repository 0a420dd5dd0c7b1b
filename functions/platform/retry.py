"""What an error means for delivery: a pure function from error and circumstances to an action."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from api_services.errors import AppError, PermanentError, TransientError

VISIBILITY_MAX_SECONDS: Final = 43_200
"""Twelve hours, counted from the receive, not from the call (API reference, ChangeMessageVisibility)."""

BACKOFF_FIRST_SECONDS: Final = 5.0
BACKOFF_MAX_SECONDS: Final = 900.0

UNKNOWN_CODE: Final = "unexpected"
"""The code of an error that is none of ours."""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """Send to the dead-letter queue now and count as handled."""


@dataclass(frozen=True, slots=True)
class Defer:
    """Let the message become visible after `seconds`, and report it as failed."""

    seconds: int


@dataclass(frozen=True, slots=True)
class Redeliver:
    """Report as failed; SQS delivers again when the visibility timeout ends."""


Action = DeadLetter | Defer | Redeliver


def plan(error: BaseException, receive_count: int, *, in_flight_seconds: float, jitter: Callable[[], float]) -> Action:
    """Decide by the error's type. `jitter()` is uniform in 0..1; `in_flight_seconds` counts from the receive.

    A transient error waits 5 s, 10 s, 20 s, ... up to 15 minutes, at most halved by jitter; a stated
    `retry_after_seconds` is never undercut and gains up to a tenth. Both end where SQS's twelve hours end.
    """
    if isinstance(error, PermanentError):
        return DeadLetter()
    if not isinstance(error, TransientError):
        return Redeliver()
    stated = error.retry_after_seconds
    if stated is not None and not math.isnan(stated) and stated > 0:
        wanted = stated * (1 + 0.1 * jitter())
    else:
        doublings = min(max(receive_count, 1) - 1, 16)
        wanted = min(BACKOFF_FIRST_SECONDS * 2**doublings, BACKOFF_MAX_SECONDS) * (0.5 + 0.5 * jitter())
    left = VISIBILITY_MAX_SECONDS - max(0.0, in_flight_seconds)
    return Defer(math.ceil(wanted) if wanted <= left - 1 else max(0, math.floor(left)))


def code_of(error: BaseException) -> str:
    """The stable code of one of our errors, else `unexpected`."""
    return error.code if isinstance(error, AppError) else UNKNOWN_CODE


def margin_seconds(timeout_seconds: float) -> float:
    """Time kept free at a function's end: a tenth, at least 5 s, never more than half."""
    return min(max(5.0, timeout_seconds / 10), timeout_seconds / 2)
