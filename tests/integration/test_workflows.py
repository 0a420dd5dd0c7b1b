"""The workflows: what actionlint, shellcheck and zizmor say of them, and what no tool asks."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.ci.actionlint import find_or_build, path_with

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
ACTIONS = [*WORKFLOWS, *sorted((ROOT / ".github/actions").glob("*/action.yml"))]
BIN = Path(sys.executable).parent
PINNED = re.compile(r"^[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+(\.\d+)*$")


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    actionlint = find_or_build(os.environ)
    environ = {**os.environ, "PATH": path_with(actionlint, BIN / "shellcheck")}
    files = [str(path) for path in sorted((folder / ".github/workflows").glob("*.yml"))]
    return subprocess.run([actionlint, "-oneline", *files], cwd=folder, env=environ, capture_output=True, text=True)  # noqa: S603


def audit(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [BIN / "zizmor", "--offline", "--no-progress", "--quiet", ".github"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)  # noqa: S603


def copied(tmp_path: Path, name: str, old: str, new: str) -> Path:
    for path in (*ACTIONS, ROOT / ".github/zizmor.yml"):
        target = tmp_path / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        text = path.read_text()
        if path.name == name:
            assert old in text
            text = text.replace(old, new)
        target.write_text(text)
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)  # noqa: S603, S607
    return tmp_path


def workflow(path: Path) -> dict[Any, Any]:
    return yaml.safe_load(path.read_text())


def test_actionlint_and_shellcheck_find_nothing() -> None:
    done = lint(ROOT)
    assert (done.returncode, done.stdout) == (0, "")


def test_zizmor_finds_nothing() -> None:
    done = audit(ROOT)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("name", "old", "new", "tool"),
    [
        ("main.yml", "needs: [checks]", "needs: [nothing]", lint),
        ("deploy.yml", '-s "$STAGE" --canary', "-s $STAGE --canary", lint),
        ("deploy.yml", '-s "$STAGE" --canary', '-s "${{ inputs.stage }}" --canary', audit),
        ("checks.yml", "@3d3c42e5aac5ba805825da76410c181273ba90b1 # v7.0.1", "@v7", audit),
        ("pull-request.yml", "  pull_request:\n", "  pull_request_target:\n", audit),
    ],
    ids=["unknown job", "unquoted", "injection", "unpinned", "a fork's code with secrets"],
)
def test_the_tools_find_what_they_are_there_for(tmp_path: Path, name: str, old: str, new: str, tool: Any) -> None:
    assert tool(copied(tmp_path, name, old, new)).returncode != 0


def test_every_action_is_pinned_by_commit_with_its_version_beside_it() -> None:
    uses = [
        line.partition("uses:")[2].strip()
        for path in ACTIONS
        for line in path.read_text().splitlines()
        if "uses:" in line and "uses: ./" not in line
    ]
    assert len(uses) > 5
    assert [use for use in uses if not PINNED.match(use)] == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_no_checkout_leaves_its_token_behind(path: Path) -> None:
    steps = [step for job in workflow(path)["jobs"].values() for step in job.get("steps", ())]
    checkouts = [step for step in steps if "actions/checkout@" in step.get("uses", "")]
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_rights_are_given_by_job_and_nothing_hangs(path: Path) -> None:
    document = workflow(path)
    assert document["permissions"] == {}
    for name, job in document["jobs"].items():
        assert "permissions" in job, name
        assert "uses" in job or job["timeout-minutes"] <= 60, name


def test_the_job_that_writes_to_the_pull_request_runs_none_of_its_code() -> None:
    jobs = workflow(ROOT / ".github/workflows/pull-request.yml")["jobs"]
    writers = [job for job in jobs.values() if job["permissions"].get("pull-requests") == "write"]
    assert len(writers) == 1
    assert not any("checkout" in step.get("uses", "") or "./" in step.get("run", "") for step in writers[0]["steps"])


def test_previews_of_forks_get_no_role() -> None:
    preview = workflow(ROOT / ".github/workflows/pull-request.yml")["jobs"]["preview"]
    assert preview["permissions"] == {"contents": "read", "id-token": "write"}
    assert preview["if"] == "github.event.pull_request.head.repo.full_name == github.repository"


def test_no_role_but_the_deployments_can_change_anything_and_prod_waits_for_its_environment() -> None:
    deploy = workflow(ROOT / ".github/workflows/deploy.yml")["jobs"]["deploy"]
    assert deploy["environment"] == "${{ inputs.stage }}"
    text = "".join(path.read_text() for path in WORKFLOWS if path.stem != "deploy")
    assert not re.search(r"\bpulumi (up|destroy|refresh)\b", text)
    release = workflow(ROOT / ".github/workflows/release.yml")
    assert release[True] == {"push": {"tags": ["v*"]}}
    assert release["jobs"]["prod"]["needs"] == ["checks"]
