import importlib

import pytest

from api_services.errors import ConfigurationError
from cli.app import COMMANDS, run
from cli.errors import exit_code_of


def test_an_error_of_the_users_is_one_sentence_and_exit_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    def refuse() -> int:
        raise ConfigurationError("the port is taken; choose another.", code="port_taken")

    assert exit_code_of(refuse) == 2
    assert capsys.readouterr().err == "error (port_taken): the port is taken; choose another.\n"


def test_ctrl_c_is_no_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted() -> int:
        raise KeyboardInterrupt

    assert exit_code_of(interrupted) == 130
    assert capsys.readouterr().err == "interrupted\n"


def test_a_fault_of_the_program_is_not_hidden() -> None:
    def broken() -> int:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        exit_code_of(broken)


@pytest.mark.parametrize("arguments", [["nonsense"], ["status", "--nonsense"], ["test", "nonsense"]])
def test_a_command_line_that_means_nothing_ends_with_2(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 2
    assert "nonsense" in capsys.readouterr().err


def test_every_command_is_answered_by_the_module_that_is_named_for_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    shown = capsys.readouterr().out
    for name, module in COMMANDS.items():
        assert importlib.import_module(module).app is not None
        assert f"│ {name} " in shown, name
