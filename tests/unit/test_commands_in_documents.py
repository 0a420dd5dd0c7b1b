"""Every command line of ours that a document shows exists, with the options it shows."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main
from typer.core import TyperGroup

from cli.app import COMMANDS, build

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SHOWN = re.compile(r"(?:^|[`($\s])\./sophia ([^\n`#)]+)", re.MULTILINE)
PASSED_ON = frozenset({"pulumi"})
"""Commands whose arguments belong to another program."""


def shown(path: Path) -> Iterator[list[str]]:
    for match in SHOWN.finditer(path.read_text()):
        line = re.split(r"\s(?:&&|\|\|?|>|;)\s", match[1])[0].strip().rstrip(".,;:|")
        yield shlex.split(line)


@pytest.fixture(scope="module")
def root() -> TyperGroup:
    command = typer.main.get_command(build(list(dict.fromkeys(COMMANDS.values()))))
    assert isinstance(command, TyperGroup)
    return command


def fault(words: list[str], root: TyperGroup) -> str | None:
    command: Any = root
    rest = list(words)
    while isinstance(command, TyperGroup) and rest and not rest[0].startswith("-"):
        name = rest.pop(0).rstrip(",")
        found = command.commands.get(name)
        if found is None:
            return f"there is no command '{name}'"
        command = found
        if name in PASSED_ON:
            return None
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    known |= {"-h", "--help"}
    options = [word.partition("=")[0] for word in rest if word.startswith("-")]
    unknown = [option for option in options if option not in known]
    return f"{' '.join(words)}: no option {unknown[0]}" if unknown else None


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_commands_shown_exist(path: Path, root: TyperGroup) -> None:
    assert [text for words in shown(path) if (text := fault(words, root))] == []


def test_the_scan_sees_commands_in_blocks_and_in_sentences(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text(
        "Run `./sophia dlq list -s dev`, then:\n\n```sh\n./sophia up    # start\nA=$(./sophia package --json)\n"
        "./sophia verify -s dev | head\n```\n"
    )
    assert list(shown(tmp_path / "a.md")) == [
        ["dlq", "list", "-s", "dev"],
        ["up"],
        ["package", "--json"],
        ["verify", "-s", "dev"],
    ]
    assert sum(len(list(shown(path))) for path in DOCUMENTS) > 20


def test_a_wrong_command_or_option_is_found(root: TyperGroup) -> None:
    assert fault(["nothing"], root) == "there is no command 'nothing'"
    assert fault(["secrets", "nothing"], root) == "there is no command 'nothing'"
    assert fault(["package", "--nothing"], root) == "package --nothing: no option --nothing"
    assert fault(["pulumi", "preview", "--anything"], root) is None
