import sys
from collections.abc import Sequence

import pytest
from rich.console import Console

from api_services.errors import ConfigurationError, InvalidInputError
from cli.test import browser
from cli.test.lib import STEPS, Outcome, Step, outcome_table, run_steps, steps_named

PASS = Step("good", "passes", (sys.executable, "-c", ""))
FAIL = Step("bad", "fails", (sys.executable, "-c", "raise SystemExit(3)"))


def test_steps_run_in_their_own_order_whatever_order_they_are_named_in() -> None:
    assert [step.name for step in steps_named(["unit", "lint"])] == ["lint", "unit"]
    assert steps_named([]) == list(STEPS)


def test_an_unknown_step_is_answered_with_the_known_ones() -> None:
    with pytest.raises(InvalidInputError, match="no test step 'units'; there are lint, "):
        steps_named(["units"])


def test_every_step_runs_even_after_a_failure_and_its_exit_code_is_kept() -> None:
    said: list[str] = []
    outcomes = run_steps([FAIL, PASS], fail_fast=False, say=said.append)
    assert [outcome.exit_code for outcome in outcomes] == [3, 0]
    assert said == ["== bad: fails", "== good: passes"]


def test_fail_fast_runs_nothing_after_a_failure_and_says_so() -> None:
    outcomes = run_steps([PASS, FAIL, PASS], fail_fast=True, say=lambda _: None)
    assert [outcome.exit_code for outcome in outcomes] == [0, 3, None]
    assert not outcomes[2].passed


def test_the_table_tells_each_result() -> None:
    console = Console(width=80, force_terminal=False)
    with console.capture() as shown:
        console.print(outcome_table([Outcome(PASS, 0, 1.5), Outcome(FAIL, 3, 2.0), Outcome(PASS, None, 0.0)]))
    text = shown.get()
    assert "passed" in text
    assert "failed (3)" in text
    assert "not run" in text
    assert "1.5" in text


@pytest.fixture
def no_browser(monkeypatch: pytest.MonkeyPatch) -> None:
    def which(name: str) -> str:
        return f"/usr/bin/{name}"

    monkeypatch.setattr(browser, "find", lambda: None)
    monkeypatch.setattr(browser.shutil, "which", which)


@pytest.mark.usefixtures("no_browser")
def test_a_missing_browser_is_installed_where_that_may_be_done_after_refreshing_the_lists() -> None:
    calls: list[str] = []

    def run(command: Sequence[str]) -> int:
        calls.append(command[1])
        return 0 if calls == ["install", "update", "install"] or command[1] == "update" else 100

    browser.ensure(run=run, is_root=True)
    assert calls == ["install", "update", "install"]


@pytest.mark.usefixtures("no_browser")
def test_without_the_right_to_install_one_the_sentence_says_how() -> None:
    with pytest.raises(ConfigurationError, match="apt-get install chromium") as caught:
        browser.ensure(run=lambda _: 0, is_root=False)
    assert caught.value.code == "browser_missing"


@pytest.mark.usefixtures("no_browser")
def test_a_browser_that_cannot_be_installed_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match="could not be installed"):
        browser.ensure(run=lambda _: 100, is_root=True)
