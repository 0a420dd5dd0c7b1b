"""Plays the demonstration on the local stage."""

import time
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from api_services.errors import ConfigurationError
from cli.demo.documents import DocumentsPlayed, play_documents
from cli.demo.interviews import play_interviews
from cli.demo.interviews_played import InterviewsPlayed
from local.running import RunningStage
from local.stage import LocalStage
from toolchain.progress import Progress


class Half(StrEnum):
    """What can be played alone."""

    INTERVIEWS = "interviews"
    DOCUMENTS = "documents"


@dataclass(slots=True)
class Outcome:
    """All that happened; `steps` are seconds by name, in order."""

    interviews: InterviewsPlayed | None = None
    documents: DocumentsPlayed | None = None
    steps: dict[str, float] = field(default_factory=dict[str, float])
    kept: bool = False

    @property
    def faults(self) -> list[str]:
        """Each promise that does not hold."""
        return [
            *(self.interviews.faults if self.interviews is not None else []),
            *(self.documents.faults if self.documents is not None else []),
        ]

    def as_json(self) -> dict[str, Any]:
        """A summary for programs."""
        documents = asdict(self.documents) if self.documents is not None else None
        if documents is not None and self.documents is not None:
            pages = self.documents.searches.items()
            # A Counter does not survive `asdict`: its constructor counts the pairs.
            documents["states"] = dict(self.documents.states)
            documents["searches"] = {query: page.model_dump(mode="json", by_alias=True) for query, page in pages}
        return {
            "ok": not self.faults,
            "faults": self.faults,
            "stepSeconds": {name: round(seconds, 3) for name, seconds in self.steps.items()},
            "interviews": self.interviews.as_json() if self.interviews is not None else None,
            "documents": documents,
            "kept": self.kept,
        }


class View(Protocol):
    """Who shows it."""

    @property
    def progress(self) -> Progress:
        """For bringing the stage up and down."""
        ...

    def starting(self) -> AbstractContextManager[None]:
        """A context around bringing the stage up or down."""
        ...

    def pause(self) -> None:
        """Take down what is drawn live."""
        ...

    def watch_interviews(self, played: InterviewsPlayed, doing: str) -> None: ...

    def interviews(self, played: InterviewsPlayed) -> None: ...

    def watch_documents(self, text: str) -> None: ...

    def documents(self, played: DocumentsPlayed) -> None: ...

    def summary(self, outcome: Outcome, stage: RunningStage | None) -> None: ...


def run_demo(view: View, *, keep: bool, half: Half | None, stage: LocalStage | None = None) -> Outcome:
    """Bring the stage up, play, show, check, and bring down what was not up before.

    Raises `ConfigurationError` where the stage does not come up, `DependencyError` where it does not answer.
    """
    stage = stage or LocalStage()
    ran_before = _runs(stage)
    outcome = Outcome(kept=keep or ran_before)
    with view.starting(), _timed(outcome, "stage up"):
        running = stage.up(view.progress)
    outcome.steps.update({f"  {name}": seconds for name, seconds in view.progress.steps})
    try:
        _play(view, running, half, outcome)
    finally:
        view.pause()
        if not outcome.kept:
            with view.starting(), _timed(outcome, "stage down"):
                stage.down()
    view.summary(outcome, running if outcome.kept else None)
    return outcome


def _play(view: View, running: RunningStage, half: Half | None, outcome: Outcome) -> None:
    if half is not Half.DOCUMENTS:
        with _timed(outcome, "interviews"):
            outcome.interviews = play_interviews(running, watch=view.watch_interviews)
        outcome.steps.update({f"  {name}": seconds for name, seconds in outcome.interviews.steps.items()})
        view.interviews(outcome.interviews)
    if half is not Half.INTERVIEWS:
        with _timed(outcome, "documents"):
            outcome.documents = play_documents(running, note=view.watch_documents)
        view.documents(outcome.documents)


def _runs(stage: LocalStage) -> bool:
    try:
        stage.running()
    except ConfigurationError:
        return False
    return True


@contextmanager
def _timed(outcome: Outcome, name: str) -> Generator[None]:
    outcome.steps[name] = 0.0
    started = time.monotonic()
    yield
    outcome.steps[name] = time.monotonic() - started
