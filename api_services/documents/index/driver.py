"""What a libSQL driver must do: run statements as one transaction. Nothing above knows which driver it is."""

import logging
import random
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeVar

from api_services.documents.errors import IndexBusyError

logger = logging.getLogger(__name__)

Value = None | int | float | str | bytes
Row = Sequence[Value]

BUSY_FIRST_SECONDS: Final = 0.02
BUSY_MOST_SECONDS: Final = 1.0
DEFAULT_WAIT_SECONDS: Final = 20.0

T = TypeVar("T")


class Statement(NamedTuple):
    """SQL with `?` parameters."""

    sql: str
    args: tuple[Value, ...] = ()


class WriterBusyError(Exception):
    """Another writer holds the database at this moment; raised by drivers, handled by `retry_while_busy`."""


class IndexDriver(ABC):
    """A connection, or several, to one libSQL database; safe to share between threads."""

    max_batch_rows: int
    """How many chunks one transaction should write, so that it holds the writer for milliseconds."""

    max_batch_bytes: int

    @abstractmethod
    def read(self, statements: Sequence[Statement]) -> list[list[Row]]:
        """The rows of each statement."""

    @abstractmethod
    def write(self, statements: Sequence[Statement], *, wait_seconds: float = DEFAULT_WAIT_SECONDS) -> list[list[Row]]:
        """Run all in one immediate transaction, or none; waits at most `wait_seconds` for other writers.

        Everything the statements need is in them: no other call happens while the transaction is open.
        """

    @abstractmethod
    def close(self) -> None:
        """Let go of connections."""


def retry_while_busy(
    call: Callable[[], T],
    *,
    wait_seconds: float,
    sleep: Callable[[float], object] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
    jitter: Callable[[], float] = random.random,
) -> T:
    """Call until no other writer is in the way; raises `IndexBusyError` after `wait_seconds`."""
    deadline = clock() + wait_seconds
    pause = BUSY_FIRST_SECONDS
    while True:
        try:
            return call()
        except WriterBusyError as exc:
            left = deadline - clock()
            if left <= 0:
                raise IndexBusyError(
                    f"another writer held the search index for more than {wait_seconds:.0f} s; the call can be repeated"
                ) from exc
            # The wait is ours and not SQLite's: its busy handler would hold Python's interpreter lock meanwhile.
            sleep(min(left, pause * (0.5 + jitter())))
            pause = min(pause * 2, BUSY_MOST_SECONDS)
