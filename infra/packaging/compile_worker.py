"""Compiles modules for one interpreter; runs as a script under the function's Python version, not the builder's.

Reads a line of JSON `[[name, length], ...]` and then the sources; writes for each a length and an unchecked-hash
`.pyc`, or a length of 0 where the source is not valid for this Python (templates, code for other versions).
"""

import importlib.util
import json
import marshal
import sys
from collections.abc import Iterable
from types import CodeType
from typing import cast


def _held(value: object, hold: list[object]) -> None:
    """Hold a second reference to all that `value` is made of.

    marshal marks an object for reuse unless it has exactly one reference, and how many it has depends on what else the
    interpreter did. With two references held, each object is marked always.
    """
    hold.append(value)
    if isinstance(value, (tuple, frozenset)):
        for item in cast("Iterable[object]", value):
            _held(item, hold)
    elif isinstance(value, CodeType):
        for attribute in (
            "co_code",
            "co_consts",
            "co_names",
            "co_varnames",
            "co_cellvars",
            "co_freevars",
            "co_filename",
            "co_name",
            "co_qualname",
            "co_linetable",
            "co_exceptiontable",
        ):
            _held(getattr(value, attribute), hold)


def compiled(name: str, source: bytes) -> bytes:
    """Bytes of the `.pyc` of `/var/task/<name>`; empty where `source` does not compile."""
    try:
        code = compile(source, "/var/task/" + name, "exec", dont_inherit=True, optimize=0)
    except (SyntaxError, ValueError):
        return b""
    hold: list[object] = []
    _held(code, hold)
    flags = (1).to_bytes(4, "little")
    return importlib.util.MAGIC_NUMBER + flags + importlib.util.source_hash(source) + marshal.dumps(code)


def main() -> None:
    names = json.loads(sys.stdin.buffer.readline())
    for name, length in names:
        result = compiled(name, sys.stdin.buffer.read(length))
        sys.stdout.buffer.write(len(result).to_bytes(4, "little") + result)


if __name__ == "__main__":
    main()
