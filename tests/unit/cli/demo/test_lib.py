"""The demonstration's frame: what it starts it stops, whatever happens, and a broken promise is its exit code."""

import json
from collections import Counter
from pathlib import Path

import pytest
import typer

from api_services.documents.models import SearchHit, SearchPage
from api_services.errors import ConfigurationError, DependencyError
from cli.demo import commands, lib
from cli.demo.documents import DocumentsPlayed
from cli.demo.interviews_played import InterviewsPlayed
from cli.demo.lib import Half, Outcome, run_demo
from cli.demo.view import DemoView
from local.running import RunningStage
from local.stage import LocalStage
from toolchain.progress import Progress


class FakeStage(LocalStage):
    """Counts what is asked of it."""

    def __init__(self, tmp_path: Path, *, runs: bool = False) -> None:
        super().__init__(tmp_path, environ={})
        self.runs = runs
        self.calls: list[str] = []

    def up(self, progress: Progress | None = None) -> RunningStage:
        self.calls.append("up")
        return RunningStage({"api": 1}, {}, {}, Path(), Path(), uses_real_openai=False)

    def down(self, progress: Progress | None = None) -> int:
        self.calls.append("down")
        return 0

    def running(self) -> RunningStage:
        if not self.runs:
            raise ConfigurationError("not up")
        return RunningStage({"api": 1}, {}, {}, Path(), Path(), uses_real_openai=False)


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> InterviewsPlayed:
    played = InterviewsPlayed(run="r")

    def interviews(stage: RunningStage, *, watch: object) -> InterviewsPlayed:
        return played

    def documents(stage: RunningStage, *, note: object) -> DocumentsPlayed:
        return DocumentsPlayed()

    monkeypatch.setattr(lib, "play_interviews", interviews)
    monkeypatch.setattr(lib, "play_documents", documents)
    return played


@pytest.mark.usefixtures("played")
@pytest.mark.parametrize(
    ("keep", "runs", "calls"), [(False, False, ["up", "down"]), (True, False, ["up"]), (False, True, ["up"])]
)
def test_what_was_started_is_stopped_unless_it_is_kept_or_ran_before(
    tmp_path: Path, keep: bool, runs: bool, calls: list[str]
) -> None:
    stage = FakeStage(tmp_path, runs=runs)
    outcome = run_demo(DemoView(quiet=True), keep=keep, half=None, stage=stage)
    assert stage.calls == calls
    assert outcome.interviews is not None
    assert outcome.documents is not None


@pytest.mark.parametrize("error", [DependencyError("no answer"), KeyboardInterrupt()])
def test_a_stage_is_stopped_when_playing_fails_or_is_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    def interviews(stage: RunningStage, *, watch: object) -> InterviewsPlayed:
        raise error

    monkeypatch.setattr(lib, "play_interviews", interviews)
    stage = FakeStage(tmp_path)
    with pytest.raises(type(error)):
        run_demo(DemoView(quiet=True), keep=False, half=None, stage=stage)
    assert stage.calls == ["up", "down"]


@pytest.mark.usefixtures("played")
def test_one_half_can_be_played_alone(tmp_path: Path) -> None:
    only = run_demo(DemoView(quiet=True), keep=True, half=Half.INTERVIEWS, stage=FakeStage(tmp_path))
    assert (only.interviews is not None, only.documents) == (True, None)
    other = run_demo(DemoView(quiet=True), keep=True, half=Half.DOCUMENTS, stage=FakeStage(tmp_path))
    assert (other.interviews, other.documents is not None) == (None, True)


def test_a_broken_promise_of_either_half_is_exit_code_1(monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes = [
        Outcome(interviews=InterviewsPlayed(run="r", checks={"it holds": None, "it broke": "look"})),
        Outcome(documents=DocumentsPlayed(faults=["document x is failed"])),
    ]
    for outcome in outcomes:
        assert len(outcome.faults) == 1
        assert outcome.as_json()["ok"] is False

        def run(*arguments: object, outcome: Outcome = outcome, **options: object) -> Outcome:
            return outcome

        monkeypatch.setattr(lib, "run_demo", run)
        with pytest.raises(typer.Exit) as caught:
            commands.demo(as_json=True)
        assert caught.value.exit_code == 1
    assert Outcome(interviews=InterviewsPlayed(run="r", checks={"it holds": None})).faults == []


def test_the_summary_is_json_with_all_that_happened() -> None:
    hit = SearchHit(
        document_id="d",
        version=1,
        document_title="D",
        chunk_number=0,
        heading="",
        title="D",
        summary="",
        keywords=(),
        snippet="text",
        highlights=((0, 4),),
        score=0.1,
    )
    played = DocumentsPlayed(
        states=Counter({"indexed": 2}), searches={"q": SearchPage(query="q", hits=(hit,), next_cursor=None)}
    )
    summary = json.loads(json.dumps(Outcome(InterviewsPlayed(run="r"), played, steps={"stage up": 1.23456}).as_json()))
    assert summary["ok"] is True
    assert summary["stepSeconds"] == {"stage up": 1.235}
    assert summary["documents"]["states"] == {"indexed": 2}
    assert summary["documents"]["searches"]["q"]["hits"][0]["snippet"] == "text"
