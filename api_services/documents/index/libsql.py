"""The embedded driver: a libSQL file of this machine."""

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Protocol, cast

from api_services.documents.errors import IndexAccessError, IndexUnavailableError
from api_services.documents.index.driver import (
    DEFAULT_WAIT_SECONDS,
    IndexDriver,
    Row,
    Statement,
    WriterBusyError,
    retry_while_busy,
)

BATCH_ROWS: Final = 100
"""Measured: a full-text row costs 0.1 to 0.3 ms, so the writer is held for some 30 ms."""

BATCH_BYTES: Final = 16 * 1024 * 1024


class _Connection(Protocol):
    def execute(self, sql: str, parameters: tuple[Any, ...] = ..., /) -> Any: ...
    def close(self) -> None: ...


class LibsqlFileDriver(IndexDriver):
    """One connection a thread; write-ahead log, so readers never wait for the writer."""

    max_batch_rows = BATCH_ROWS
    max_batch_bytes = BATCH_BYTES

    def __init__(self, path: Path) -> None:
        self._path = path
        self._local = threading.local()
        self._lock = threading.Lock()
        self._opened: list[_Connection] = []

    def read(self, statements: Sequence[Statement]) -> list[list[Row]]:
        """The rows of each statement."""
        return retry_while_busy(lambda: self._run(statements), wait_seconds=DEFAULT_WAIT_SECONDS)

    def write(self, statements: Sequence[Statement], *, wait_seconds: float = DEFAULT_WAIT_SECONDS) -> list[list[Row]]:
        """Run all in one immediate transaction, or none."""
        return retry_while_busy(lambda: self._transaction(statements), wait_seconds=wait_seconds)

    def close(self) -> None:
        """Close every thread's connection."""
        with self._lock:
            opened, self._opened = self._opened, []
        for connection in opened:
            connection.close()
        self._local = threading.local()

    def _transaction(self, statements: Sequence[Statement]) -> list[list[Row]]:
        self._run([Statement("BEGIN IMMEDIATE")])
        try:
            rows = self._run(statements)
            self._run([Statement("COMMIT")])
        except BaseException:
            self._rollback()
            raise
        return rows

    def _rollback(self) -> None:
        try:
            self._run([Statement("ROLLBACK")])
        except (IndexUnavailableError, WriterBusyError):
            # A connection whose transaction can't be ended is of no more use; the file ends it when it is closed.
            self._local.connection.close()
            del self._local.connection

    def _run(self, statements: Sequence[Statement]) -> list[list[Row]]:
        connection = self._connection()
        try:
            return [list(connection.execute(sql, args).fetchall() or ()) for sql, args in statements]
        except ValueError as exc:  # the only class this driver raises
            raise self._translated(str(exc)) from exc

    def _translated(self, message: str) -> Exception:
        if "locked" in message or "busy" in message:
            return WriterBusyError(message)
        if "not a database" in message or "malformed" in message:
            return IndexAccessError(
                f"{self._path.name} is not a search index; move it away and let the reconciler fill a new one"
            )
        return IndexUnavailableError(f"the search index failed: {message}")

    def _connection(self) -> _Connection:
        connection: _Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._open()
            self._local.connection = connection
            with self._lock:
                self._opened.append(connection)
        return connection

    def _open(self) -> _Connection:
        try:
            import libsql
        except ImportError as exc:
            raise IndexAccessError(
                "this machine has no driver for an index in a file; set INDEX_URL to the URL of a libSQL server"
            ) from exc
        connection: Any = None
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            connection = cast(Any, libsql).connect(str(self._path), timeout=0.0, isolation_level=None)
            self._write_ahead(connection)
        except WriterBusyError:
            connection.close()
            raise
        except (OSError, ValueError) as exc:
            if connection is not None:
                connection.close()
            raise IndexAccessError(
                f"the search index {self._path} cannot be opened ({exc}); set INDEX_URL to a file that can be written "
                "or to the URL of a libSQL server"
            ) from exc
        return connection

    def _write_ahead(self, connection: Any) -> None:
        """Processes that open a new file at once lock each other out while one of them turns it to WAL."""
        try:
            connection.execute("PRAGMA journal_mode=WAL").fetchall()
            connection.execute("PRAGMA synchronous=NORMAL").fetchall()
        except ValueError as exc:
            error = self._translated(str(exc))
            if isinstance(error, WriterBusyError):
                raise error from exc
            raise
