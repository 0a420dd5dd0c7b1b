"""Progress of a long command, drawn on stderr: a spinner with what is under way, a line for each step done."""

import sys
import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.markup import escape

from toolchain.progress import Progress

SAY_AGAIN_SECONDS = 15.0
"""Where notes cannot replace each other, a log that stays silent for longer looks like one that hangs."""


class DrawnProgress(Progress):
    """Use as a context; on a terminal notes replace each other, elsewhere one is written now and then."""

    def __init__(self, console: Console | None = None) -> None:
        super().__init__()
        self._console = console or Console(file=sys.stderr, highlight=False, emoji=False)
        self._status = self._console.status("")
        self._said_at = time.monotonic()

    def __enter__(self) -> Self:
        self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._status.stop()

    def note(self, text: str) -> None:
        self._status.update(escape(text))
        if not self._console.is_terminal and time.monotonic() - self._said_at >= SAY_AGAIN_SECONDS:
            self._say(escape(text))

    def took(self, step: str, seconds: float) -> None:
        super().took(step, seconds)
        self._say(f"[green]done[/green]  {escape(step):<24} {seconds:6.1f} s")

    def _say(self, text: str) -> None:
        self._said_at = time.monotonic()
        self._console.print(text)
