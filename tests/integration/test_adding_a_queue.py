"""A queue is added by the README's page, in a copy of the repository; no test of another queue notices."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.add_queue import add_queue, blocks
from toolchain.paths import ROOT

GENERATED = {
    "docs/queues.md",
    "tests/infra/snapshots/dev/invoice-issued.yaml",
    "tests/infra/snapshots/dev/stage.yaml",
    "tests/infra/snapshots/local-against-dev/invoice-issued.txt",
    "tests/infra/snapshots/local-against-dev/stage.txt",
    "tests/infra/snapshots/prod-against-dev/invoice-issued.txt",
    "tests/infra/snapshots/prod-against-dev/stage.txt",
}
CONCERNED = (
    "tests/unit/api_services/test_queues.py",
    "tests/unit/cli",
    "tests/unit/functions/test_handler_imports.py",
    "tests/unit/functions/test_errors_end_where_they_may.py",
    "tests/unit/functions/test_invoice_issued.py",
    "tests/unit/test_architecture.py",
    "tests/unit/test_docs.py",
)
"""The unit tests that read the registry or the tree; the others cannot notice a queue."""


def run(folder: Path, *command: str) -> str:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(  # noqa: S603
        command, cwd=folder, env=environ, capture_output=True, text=True, check=False, timeout=240
    )
    assert done.returncode == 0, f"{' '.join(command)}:\n{done.stdout[-6000:]}{done.stderr[-3000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what git would commit, as a repository of its own."""
    folder = tmp_path_factory.mktemp("checkout")
    for line in run(ROOT, "git", "ls-files", "--cached", "--others", "--exclude-standard").splitlines():
        if (ROOT / line).is_file():
            (folder / line).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / line, folder / line)
    run(folder, "git", "init", "-q")
    run(folder, "git", "add", "-A")
    run(folder, "git", "-c", "user.name=test", "-c", "user.email=test@example.com", "commit", "-qm", "before")
    return folder


def test_a_queue_costs_what_the_readme_says_and_breaks_no_other_queue(checkout: Path) -> None:
    written = add_queue(checkout)
    assert {path.split("/")[0] for path in blocks((checkout / "README.md").read_text())} == {
        "api_services",
        "functions",
        "tests",
    }
    python = sys.executable
    run(checkout, python, "-m", "cli", "docs")
    run(checkout, python, "-m", "ruff", "check", ".")
    run(checkout, python, "-m", "pytest", "-x", *CONCERNED)
    # Before anything is refreshed, the only snapshots that fail are the new queue's and the stage's shared one.
    stale = subprocess.run(  # noqa: S603
        [python, "-m", "pytest", "tests/infra/test_snapshots.py"],
        cwd=checkout,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    failed = [line for line in stale.stdout.splitlines() if line.startswith("FAILED")]
    assert failed
    assert all("invoice-issued" in line or "stage]" in line for line in failed), failed
    assert "./sophia test infra --update" in stale.stdout
    run(checkout, python, "-m", "cli", "test", "infra", "--update")
    run(checkout, "git", "add", "-A")
    changed = set(run(checkout, "git", "diff", "--cached", "--name-only").splitlines())
    assert changed <= written | GENERATED, changed - written - GENERATED
