"""Progress of a long command, drawn on stderr: a spinner with what is under way, a line for each step done."""

import sys
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.markup import escape

from local.progress import Progress


class DrawnProgress(Progress):
    """Use as a context; on a terminal notes replace each other, elsewhere only steps are written."""

    def __init__(self, console: Console | None = None) -> None:
        super().__init__()
        self._console = console or Console(file=sys.stderr, highlight=False)
        self._status = self._console.status("")

    def __enter__(self) -> Self:
        self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._status.stop()

    def note(self, text: str) -> None:
        self._status.update(escape(text))

    def took(self, step: str, seconds: float) -> None:
        super().took(step, seconds)
        self._console.print(f"[green]done[/green]  {escape(step):<24} {seconds:6.1f} s")
