"""Concurrent calls to the language model: a bounded number, a shared rate limit, a deadline."""

import random
import threading
import time
from collections.abc import Callable
from typing import Final, TypeVar

from api_services.errors import RateLimitedError, TransientError

T = TypeVar("T")

CALL_TIMEOUT_SECONDS: Final = 60.0
MIN_CALL_SECONDS: Final = 5.0
"""With less time left, a call would be billed and then time out."""

ATTEMPTS: Final = 4
"""Of a call that fails otherwise than by a rate limit; those wait as long as there is time."""

FIRST_PAUSE_SECONDS: Final = 0.5
MOST_PAUSE_SECONDS: Final = 30.0


class OutOfTimeError(Exception):
    """The deadline came first; `wait_seconds` is what a rate limit still asks for."""

    def __init__(self, wait_seconds: float = 0.0) -> None:
        super().__init__(wait_seconds)
        self.wait_seconds = wait_seconds


class StoppedError(Exception):
    """The work was given up because of another call's error."""


class RateGate:
    """One rate limit for all calls: the limit is the account's, so a wait asked of one call holds all."""

    def __init__(
        self, *, clock: Callable[[], float] = time.monotonic, jitter: Callable[[], float] = random.random
    ) -> None:
        self.clock = clock
        self.jitter = jitter
        self._lock = threading.Lock()
        self._changed = threading.Event()
        self._opens_at = 0.0
        self._refusals = 0
        self._stopped = False

    def pass_through(self, deadline: float) -> None:
        """Wait until the gate is open; raises `OutOfTimeError` at once where that is after `deadline`."""
        while True:
            with self._lock:
                if self._stopped:
                    raise StoppedError
                wait = self._opens_at - self.clock()
            if self.clock() + max(0.0, wait) + MIN_CALL_SECONDS > deadline:
                raise OutOfTimeError(max(0.0, wait))
            if wait <= 0:
                return
            self._changed.wait(wait)

    def shut(self, retry_after_seconds: float | None) -> None:
        """Nobody passes for that long; unstated, for longer with every refusal in a row."""
        with self._lock:
            self._refusals += 1
            wait = retry_after_seconds
            if wait is None:
                wait = min(FIRST_PAUSE_SECONDS * 2**self._refusals, MOST_PAUSE_SECONDS) * (0.5 + self.jitter())
            self._opens_at = max(self._opens_at, self.clock() + wait)

    def answered(self) -> None:
        """A call went through."""
        with self._lock:
            self._refusals = 0

    def stop(self) -> None:
        """Let nobody pass any more."""
        with self._lock:
            self._stopped = True
        self._changed.set()

    def pause(self, seconds: float) -> None:
        """Wait, unless stopped."""
        self._changed.wait(seconds)


def patiently(gate: RateGate, deadline: float, call: Callable[[float], T]) -> T:
    """`call(timeout_seconds)` until it answers.

    Raises `OutOfTimeError`, the last `TransientError` after four failures, and every other error at once; any of them
    stops the gate, and what then waits there raises `StoppedError`.
    """
    try:
        return _repeated(gate, deadline, call)
    except StoppedError:
        raise
    except BaseException:
        gate.stop()
        raise


def _repeated(gate: RateGate, deadline: float, call: Callable[[float], T]) -> T:
    failures = 0
    while True:
        gate.pass_through(deadline)
        try:
            answer = call(min(CALL_TIMEOUT_SECONDS, deadline - gate.clock()))
        except RateLimitedError as exc:
            gate.shut(exc.retry_after_seconds)
        except TransientError:
            # error-ends-here: the call is made again, a bounded number of times.
            failures += 1
            if failures == ATTEMPTS:
                raise
            gate.pause(FIRST_PAUSE_SECONDS * 2**failures * (0.5 + gate.jitter()))
        else:
            gate.answered()
            return answer
