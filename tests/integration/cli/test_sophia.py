"""The shell entry, on a copy of the repository's head with a stand-in for its Python environment."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from toolchain.paths import ROOT

pytestmark = pytest.mark.integration

_FAKE_PYTHON = '#!/bin/sh\necho "python $* in $(pwd) called from $SOPHIA_CALLER_DIR"\n'


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout whose path has a space and whose `.venv` is current but only tells how it was called."""
    root = tmp_path / "a checkout"
    (root / "toolchain").mkdir(parents=True)
    shutil.copy(ROOT / "sophia", root)
    shutil.copy(ROOT / "toolchain" / "bootstrap.py", root / "toolchain")
    (root / "requirements.txt").write_text("uv==0.0.0\n")
    (root / "requirements-dev.txt").write_text("")
    python = root / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(_FAKE_PYTHON)
    python.chmod(0o755)
    stamp = subprocess.run(["cksum"], input=b"uv==0.0.0\n", capture_output=True, check=True).stdout.decode()  # noqa: S607
    (root / ".venv" / "sophia-stamp").write_text(stamp)
    return root


def sophia(entry: Path, *arguments: str, cwd: Path, **environ: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(  # noqa: S603
        [str(entry), *arguments],
        cwd=cwd,
        env={"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), **environ},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_it_runs_from_any_folder_and_through_symbolic_links(checkout: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "absolute").symlink_to(checkout / "sophia")
    (elsewhere / "relative").symlink_to(Path("..") / "a checkout" / "sophia")
    (elsewhere / "twice").symlink_to("relative")
    for name in ("absolute", "relative", "twice"):
        done = sophia(elsewhere / name, "status", "--json", cwd=elsewhere)
        assert done.stdout == f"python -m cli status --json in {checkout} called from {elsewhere}\n", done.stderr


def test_arguments_arrive_as_they_were_given(checkout: Path) -> None:
    python = checkout / ".venv" / "bin" / "python"
    python.write_text('#!/bin/sh\nfor argument in "$@"; do echo "[$argument]"; done\n')
    done = sophia(checkout / "sophia", "send", "a b", "", "*", cwd=checkout)
    assert done.stdout.splitlines() == ["[-m]", "[cli]", "[send]", "[a b]", "[]", "[*]"]


def test_without_a_new_enough_python_it_is_one_sentence_and_exit_2(checkout: Path) -> None:
    (checkout / ".venv" / "sophia-stamp").unlink()
    done = sophia(checkout / "sophia", "status", cwd=checkout, SOPHIA_PYTHON="no-such-python")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == (
        "error (python): no Python 3.11 or newer was found; install one, or name it in SOPHIA_PYTHON.\n"
    )


def test_an_old_python_is_not_taken(checkout: Path, tmp_path: Path) -> None:
    (checkout / ".venv" / "sophia-stamp").unlink()
    old = tmp_path / "old-python"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    done = sophia(checkout / "sophia", "status", cwd=checkout, SOPHIA_PYTHON=str(old))
    assert (done.returncode, done.stderr.startswith("error (python): no Python 3.11")) == (2, True)


def test_an_environment_that_cannot_be_made_is_one_sentence_and_is_not_taken_for_made(checkout: Path) -> None:
    shutil.rmtree(checkout / ".venv")
    (checkout / "requirements.txt").write_text("pydantic\n")
    done = sophia(checkout / "sophia", "status", cwd=checkout, SOPHIA_PYTHON=sys.executable)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == (
        "error (python_environment): requirements.txt pins no uv; restore it from the repository"
    )
    assert "Traceback" not in done.stderr
    assert not (checkout / ".venv" / "sophia-stamp").exists()


def test_changed_requirements_make_the_environment_anew(checkout: Path) -> None:
    (checkout / "requirements-dev.txt").write_text("# changed\n")
    (checkout / "requirements.txt").write_text("nothing\n")
    done = sophia(checkout / "sophia", "status", cwd=checkout, SOPHIA_PYTHON=sys.executable)
    assert "preparing .venv from the pinned requirements" in done.stderr
    assert done.returncode == 2


def test_a_command_loads_only_its_own_group() -> None:
    program = (
        "import sys\nfrom cli.app import run\nrun(['status', '--help'])\n"
        "print([name for name in ('boto3', 'pymongo', 'openai', 'pulumi', 'fastapi') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout.splitlines()[-1] == "[]"
