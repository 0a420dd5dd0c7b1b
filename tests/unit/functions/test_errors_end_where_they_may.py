"""Nothing that handles a message catches an error and returns normally: that deletes the message unprocessed.

Where an error may end, the code says so and why: `# error-ends-here: <reason>` inside the `except` clause. In
`functions/` that holds for every error; a service may decide by a narrow one (a refused answer, a key that exists),
never by a kind.
"""

import ast
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.test_architecture import python_files, relative

MARKER = re.compile(r"#\s*error-ends-here:\s*(?P<reason>\S.{14,})")

TRANSLATES = {"KeyError", "IndexError", "TypeError", "ValueError", "StopIteration", "queue.Empty"}
"""Answers of a lookup or a conversion: control flow, not the failure of a message's work."""


KINDS = re.compile(
    r"\b(Exception|BaseException|AppError|PermanentError|TransientError|DependencyError|OSError|PyMongoError|OpenAIError)\b"
)
"""Errors that say how to go on, not what happened."""


def swallowing(source: str, *, narrow: bool = False) -> Iterator[int]:
    """Lines of `except` clauses from which control leaves without an error, unmarked; and of `suppress`."""
    lines = source.splitlines()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ExceptHandler):
            text = lines[node.lineno - 1 : node.end_lineno]
            may = _only_lookups(node.type) or (narrow and node.type is not None and not _is_kind(node.type))
            if not may and not _always_raises(node.body) and not any(map(MARKER.search, text)):
                yield node.lineno
        elif isinstance(node, ast.With | ast.AsyncWith):
            for item in node.items:
                if "suppress" in ast.unparse(item.context_expr):
                    yield node.lineno
        elif isinstance(node, ast.Try):
            # A `return`, `break` or `continue` in `finally` drops the error too.
            for inner in (each for statement in node.finalbody for each in ast.walk(statement)):
                if isinstance(inner, ast.Return | ast.Break | ast.Continue):
                    yield inner.lineno


def _only_lookups(kind: ast.expr | None) -> bool:
    if kind is None:
        return False
    kinds = kind.elts if isinstance(kind, ast.Tuple) else [kind]
    return {ast.unparse(each) for each in kinds} <= TRANSLATES


def _is_kind(kind: ast.expr) -> bool:
    return KINDS.search(ast.unparse(kind)) is not None


def _always_raises(body: list[ast.stmt]) -> bool:
    last = body[-1]
    if isinstance(last, ast.Raise):
        return not any(isinstance(each, ast.Return) for statement in body for each in ast.walk(statement))
    if isinstance(last, ast.If):
        return bool(last.orelse) and _always_raises(last.body) and _always_raises(last.orelse)
    return False


HANDLERS = python_files("functions")
SERVICES = python_files(*(f"api_services/{noun}" for noun in ("credits", "interviews", "reports", "documents")))


def test_the_scan_finds_the_handlers() -> None:
    names = {relative(path) for path in HANDLERS + SERVICES}
    assert {"functions/platform/runner.py", "functions/interview_completed/handler.py"} <= names
    assert "api_services/credits/settlement.py" in names


@pytest.mark.parametrize("path", HANDLERS, ids=relative)
def test_no_error_ends_unmarked_in_what_handles_messages(path: Path) -> None:
    assert [f"{relative(path)}:{line}" for line in swallowing(path.read_text())] == []


@pytest.mark.parametrize("path", SERVICES, ids=relative)
def test_no_kind_of_error_ends_unmarked_in_a_service(path: Path) -> None:
    assert [f"{relative(path)}:{line}" for line in swallowing(path.read_text(), narrow=True)] == []


def in_function(body: str) -> str:
    return "def handle():\n" + textwrap.indent(textwrap.dedent(body), "    ")


@pytest.mark.parametrize(
    "body",
    [
        "try:\n    work()\nexcept Exception:\n    pass",
        "try:\n    work()\nexcept:\n    return None",
        "try:\n    work()\nexcept OSError as exc:\n    log(exc)",
        "try:\n    work()\nexcept OSError as exc:\n    if hard(exc):\n        raise",
        "try:\n    work()\nexcept OSError as exc:\n    if soft(exc):\n        return\n    raise",
        "try:\n    work()\nexcept OSError:\n    pass  # error-ends-here:",
        "try:\n    work()\nexcept OSError:\n    pass  # error-ends-here: fine",
        "try:\n    work()\nexcept (KeyError, OSError):\n    pass",
        "with suppress(OSError):\n    work()",
        "with contextlib.suppress(Exception):\n    work()",
        "try:\n    work()\nfinally:\n    return",
        "for each in all:\n    try:\n        work()\n    finally:\n        continue",
    ],
)
def test_an_error_that_is_swallowed_is_found(body: str) -> None:
    assert list(swallowing(in_function(body)))


@pytest.mark.parametrize(
    "body",
    [
        "work()",
        "try:\n    work()\nexcept OSError as exc:\n    raise DependencyError('x') from exc",
        "try:\n    work()\nexcept OSError:\n    if soft:\n        raise Soft from None\n    else:\n        raise",
        "try:\n    work()\nexcept OSError:\n    # error-ends-here: the store is best effort by contract.\n    log()",
        "try:\n    value = table[key]\nexcept KeyError:\n    value = None",
    ],
)
def test_an_error_that_goes_on_or_says_why_it_ends_is_fine(body: str) -> None:
    assert list(swallowing(in_function(body))) == []


def test_a_service_may_decide_by_a_narrow_error_but_not_by_a_kind() -> None:
    body = "try:\n    work()\nexcept {}:\n    return None"
    assert list(swallowing(in_function(body.format("RefusedAnswerError")), narrow=True)) == []
    for kind in ("TransientError", "Exception", "(RefusedAnswerError, errors.PermanentError)"):
        assert list(swallowing(in_function(body.format(kind)), narrow=True))
    assert list(swallowing(in_function("try:\n    work()\nexcept:\n    return None"), narrow=True))
