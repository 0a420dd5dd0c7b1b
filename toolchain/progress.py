"""How a long command tells what it does; this one is silent, the command line's draws."""

import time
from collections.abc import Generator
from contextlib import contextmanager


class Progress:
    """Steps with their times, and notes about what is under way."""

    def __init__(self) -> None:
        self.steps: list[tuple[str, float]] = []

    def note(self, text: str) -> None:
        """Something is under way; may come many times a second."""

    def took(self, step: str, seconds: float) -> None:
        """A step is complete."""
        self.steps.append((step, seconds))

    @contextmanager
    def step(self, name: str) -> Generator[None]:
        """Time a step; one that fails is not counted."""
        self.note(name)
        started = time.monotonic()
        yield
        self.took(name, time.monotonic() - started)
