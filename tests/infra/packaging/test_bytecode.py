"""Bytecode is the same bytes whatever the interpreter did before."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from infra.packaging import compile_worker
from infra.packaging.bytecode import Compiler, bytecode_name, compile_sources, find_compiler

HERE = Compiler(sys.executable, ".".join(map(str, sys.version_info[:3])))
PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"

TRICKY = b'''
"""Things whose marks in bytecode depend on how often they are used elsewhere."""
import os, re, json
from typing import Any

NAMES = frozenset({"alpha", "beta", "gamma", "os", "json", "_private"})
TABLE = (1, 257, 10**30, 2.5, 1j, b"bytes", "text with spaces", None, ..., True, ("a", ("a", "b")))

def outer(alpha: Any, beta: int = 257):
    gamma = alpha
    class Inner:
        __slots__ = ("alpha", "beta")
        def method(self):
            return gamma, [x for x in (alpha, beta)], lambda: gamma
    return Inner if alpha in {"alpha", "beta", "gamma"} else "alpha"

def once(only_argument):
    return only_argument.only_attribute("only_text", only_global)
'''


def run_worker(sources: dict[str, bytes], seed: str, before: str = "") -> bytes:
    header = json.dumps([[name, len(source)] for name, source in sources.items()]).encode() + b"\n"
    path = compile_worker.__file__
    code = f"{before}\nimport runpy; runpy.run_path({path!r}, run_name='__main__')"
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-I", "-W", "ignore", "-c", code],
        input=header + b"".join(sources.values()),
        capture_output=True,
        env={"PYTHONHASHSEED": seed},
        check=True,
    )
    length = int.from_bytes(done.stdout[:4], "little")
    return done.stdout[4 : 4 + length]


def test_bytecode_does_not_depend_on_hash_seed_nor_on_what_was_imported_or_compiled_before() -> None:
    alone = run_worker({"a.py": TRICKY}, "0")
    busy = (
        "import asyncio, decimal, email, unittest.mock, sys\n"
        f"source = {TRICKY!r}\n"
        "keep = [compile(source, '/var/task/a.py', 'exec') for _ in range(3)]\n"
        "names = [sys.intern(name) for name in ('only_argument', 'only_attribute', 'only_text', 'only_global')]\n"
    )
    assert alone
    for seed, before in (("1", ""), ("12345", ""), ("0", busy), ("7", busy)):
        assert run_worker({"a.py": TRICKY, "b.py": TRICKY}, seed, before) == alone, (seed, before[:20])


def test_the_builder_and_a_fresh_process_agree(tmp_path: Path) -> None:
    many = {f"m{index}.py": TRICKY + str(index).encode() for index in range(200)} | {"a.py": TRICKY}
    assert compile_sources(HERE, many)["a.py"] == run_worker({"a.py": TRICKY}, "3")
    cached = compile_sources(HERE, {"a.py": TRICKY}, tmp_path)
    assert compile_sources(Compiler("/nowhere", HERE.version), {"a.py": TRICKY}, tmp_path) == cached


def test_what_does_not_compile_is_left_out() -> None:
    assert set(compile_sources(HERE, {"a.py": b"x = 1\n", "b.py": b"print 'two'\n", "c.py": b"\0"})) == {"a.py"}


def test_bytecode_lies_where_python_looks() -> None:
    assert bytecode_name("a/b.py", "3.13") == "a/__pycache__/b.cpython-313.pyc"
    assert bytecode_name("six.py", "3.11") == "__pycache__/six.cpython-311.pyc"


def test_an_interpreter_of_another_version_is_not_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    other = next(version for version in ("3.12", "3.14") if version != PYTHON)
    for name in (f"python{other}", "override"):
        (tmp_path / name).write_text("#!/bin/sh\necho 3.9.1\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    monkeypatch.setenv("SOPHIA_BYTECODE_PYTHON", str(tmp_path / "override"))
    assert find_compiler(other) is None
    (tmp_path / f"python{other}").write_text(f"#!/bin/sh\necho {other}.99\n")
    monkeypatch.setenv("SOPHIA_BYTECODE_PYTHON", "")
    assert find_compiler(other) == Compiler(str(tmp_path / f"python{other}"), f"{other}.99")
    assert find_compiler(PYTHON) == HERE
