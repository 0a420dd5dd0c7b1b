"""Dying before or after any one write: every write command is counted, and from the chosen moment on the process sends
nothing more, as after SIGKILL."""

from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Any, Final

from pymongo import MongoClient
from pymongo.database import Database
from pymongo.monitoring import (
    CommandFailedEvent,
    CommandListener,
    CommandStartedEvent,
    CommandSucceededEvent,
)

WRITES: Final = frozenset({"insert", "update", "delete", "findAndModify", "commitTransaction"})


class CrashError(BaseException):
    """The process is gone. No `except Exception` sees it, the driver's own around its listeners neither."""


class Crash(CommandListener):
    """Dies at the write command of `position`, counted from 0, before it is sent or after it is answered."""

    def __init__(self, position: int | None, *, after: bool) -> None:
        self._position = position
        self._after = after
        self.writes: list[str] = []
        self.dead = False

    def started(self, event: CommandStartedEvent) -> None:
        if event.command_name in WRITES and not self.dead:
            self.writes.append(event.command_name)
            self.dead = self._is_chosen() and not self._after
        if self.dead:
            raise CrashError(f"before {event.command_name}")

    def succeeded(self, event: CommandSucceededEvent) -> None:
        self._answered(event.command_name)

    def failed(self, event: CommandFailedEvent) -> None:
        self._answered(event.command_name)

    def _answered(self, name: str) -> None:
        if name in WRITES and self._after and self._is_chosen():
            self.dead = True
            raise CrashError(f"after {name}")

    def _is_chosen(self) -> bool:
        return len(self.writes) - 1 == self._position


@contextmanager
def process_that_dies(
    database: Database[dict[str, Any]], position: int | None, *, after: bool
) -> Generator[tuple[Database[dict[str, Any]], Crash]]:
    """A connection of its own that crashes as told; what it left open on the server is ended when it has died."""
    crash = Crash(position, after=after)
    host, port = database.client.address or ("127.0.0.1", 27017)
    client = MongoClient[dict[str, Any]](
        host,
        port,
        directConnection=True,
        tz_aware=True,
        w="majority",
        event_listeners=[crash],
        heartbeatFrequencyMS=60_000,
    )
    try:
        with suppress(CrashError):
            yield client[database.name], crash
    finally:
        with suppress(CrashError):
            client.close()
        if crash.dead:
            # The server would do this by itself after transactionLifetimeLimitSeconds, 60 by default.
            database.client.admin.command("killAllSessions", [])
