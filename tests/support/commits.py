"""Commits whose acknowledgement is lost: the command reaches the real server (or not), and the driver sees a dead
connection."""

from collections.abc import Callable
from typing import Any

import pytest
from pymongo.client_session import ClientSession
from pymongo.errors import AutoReconnect


def break_commits(monkeypatch: pytest.MonkeyPatch, *, times: int, applied: bool) -> Callable[[], int]:
    """The next `times` commits fail after (or, not `applied`, before) the server has them; returns their counter."""
    original: Any = ClientSession._finish_transaction  # pyright: ignore[reportPrivateUsage]
    count = [0]

    def finish(self: ClientSession, conn: Any, command_name: str) -> Any:
        if command_name != "commitTransaction":
            return original(self, conn, command_name)
        count[0] += 1
        broken = count[0] <= times
        if broken and not applied:
            raise AutoReconnect("the connection died before the commit was sent")
        result = original(self, conn, command_name)
        if broken:
            raise AutoReconnect("the connection died before the commit was acknowledged")
        return result

    monkeypatch.setattr(ClientSession, "_finish_transaction", finish)
    return lambda: count[0]
