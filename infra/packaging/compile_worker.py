"""Compiles modules for one interpreter; runs as a script under the function's Python version, not the builder's.

Reads a line of JSON `[[name, length], ...]` and then the sources; writes for each a length and an unchecked-hash
`.pyc`, or a length of 0 where the source is not valid for this Python (templates, code for other versions).
"""

import importlib.util
import json
import marshal
import sys


def compiled(name: str, source: bytes) -> bytes:
    """Bytes of the `.pyc` of `/var/task/<name>`; empty where `source` does not compile.

    The code is written as it was compiled and never run before: what marshal writes depends on how often each object is
    referenced, and running code adds references.
    """
    try:
        code = compile(source, "/var/task/" + name, "exec", dont_inherit=True, optimize=0)
    except (SyntaxError, ValueError):
        return b""
    flags = (1).to_bytes(4, "little")
    return importlib.util.MAGIC_NUMBER + flags + importlib.util.source_hash(source) + marshal.dumps(code)


def main() -> None:
    names = json.loads(sys.stdin.buffer.readline())
    for name, length in names:
        result = compiled(name, sys.stdin.buffer.read(length))
        sys.stdout.buffer.write(len(result).to_bytes(4, "little") + result)


if __name__ == "__main__":
    main()
