from pathlib import Path

import pytest

from api_services.errors import NotFoundError
from cli.local.logs import log_lines
from local.stage import LocalStage


@pytest.fixture
def stage(tmp_path: Path) -> LocalStage:
    stage = LocalStage(tmp_path)
    stage.paths.log_dir.mkdir()
    stage.paths.log_path("api").write_text("".join(f"line {number}\n" for number in range(50)) + "cut off")
    stage.paths.log_path("mongod").write_bytes(b"\xff broken\n")
    return stage


def test_one_log_is_shown_bare_to_its_last_complete_line(stage: LocalStage) -> None:
    assert list(log_lines(stage, "api", last=2, follow=False)) == ["line 48", "line 49"]


def test_several_logs_are_told_apart(stage: LocalStage) -> None:
    assert list(log_lines(stage, None, last=1, follow=False)) == ["api     line 49", "mongod  \ufffd broken"]


def test_no_line_at_all_may_be_asked_for(stage: LocalStage) -> None:
    assert list(log_lines(stage, "api", last=0, follow=False)) == []


def test_following_gives_what_is_added_and_what_follows_a_restart(stage: LocalStage) -> None:
    path = stage.paths.log_path("api")
    lines = log_lines(stage, "api", last=1, follow=True)
    assert next(lines) == "line 49"
    with path.open("a") as log:
        log.write(" and on\nnext\n")
    assert [next(lines), next(lines)] == ["cut off and on", "next"]
    path.write_text("anew\n")
    assert next(lines) == "anew"
    lines.close()


def test_an_unknown_log_is_answered_with_the_known_ones(stage: LocalStage) -> None:
    with pytest.raises(NotFoundError, match="no log 'web'; there are api, ") as caught:
        list(log_lines(stage, "web", last=1, follow=False))
    assert "interview-completed" in caught.value.message
