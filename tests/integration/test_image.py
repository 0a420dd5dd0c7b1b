"""The image of the API: its steps are run as commands, into a folder that stands for its file system."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from api_services.http.__main__ import USER_ERROR
from infra.api import PORT
from infra.packaging.distributions import BOTOCORE_SERVICES

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[2]
DIGEST = re.compile(r"^[\w./-]+:[\w.-]+@sha256:[0-9a-f]{64}$")


@dataclass
class Stage:
    image: str
    name: str
    steps: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    def last(self, instruction: str) -> str:
        return [value for name, value in self.steps if name == instruction][-1]


def stages() -> list[Stage]:
    text = re.sub(r"\\\n", " ", (ROOT / "Dockerfile").read_text())
    found: list[Stage] = []
    for line in text.splitlines():
        instruction, _, value = line.strip().partition(" ")
        if instruction == "FROM":
            image, _, name = value.partition(" AS ")
            found.append(Stage(image, name))
        elif instruction and not instruction.startswith("#"):
            found[-1].steps.append((instruction, value.strip()))
    return found


UV, BUILD, FINAL = stages()


def place(root: Path, path: str, folder: str) -> Path:
    """Where a path of the image lies below `root`."""
    return root / (path if path.startswith("/") else f"{folder}/{path}").lstrip("/")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The build stage's file system after all its steps."""
    root = tmp_path_factory.mktemp("image")
    environ = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    environ.pop("PYTHONPATH", None)
    folder = "/"
    for instruction, value in BUILD.steps:
        if instruction == "WORKDIR":
            folder = value
            place(root, folder, "/").mkdir(parents=True)
        elif instruction == "COPY" and value.startswith("--from=uv"):
            continue
        elif instruction == "COPY":
            source, target = value.split()
            destination = place(root, target, folder)
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, destination, ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))
            else:
                destination.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / source, destination)
        elif instruction == "RUN":
            command = re.sub(r"(?<![\w.])/app\b", f"{root}/app", value)
            subprocess.run(["sh", "-euc", command], cwd=place(root, folder, "/"), env=environ, check=True)  # noqa: S603, S607
        else:
            pytest.fail(f"the build stage has a step that is not run here: {instruction}")
    return root


def start(root: Path, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    python, *command = json.loads(FINAL.last("CMD"))
    assert python == "python"
    pairs = dict(pair.split("=", 1) for pair in shlex.split(FINAL.last("ENV")))
    pairs["PYTHONPATH"] = ":".join(f"{root}{path}" for path in pairs["PYTHONPATH"].split(":"))
    return subprocess.run(  # noqa: S603
        [sys.executable, "-S", *command, *arguments],
        cwd=f"{root}{FINAL.last('WORKDIR')}",
        env={**pairs, **environ},
        capture_output=True,
        text=True,
        timeout=60,
    )


def files(root: Path) -> set[str]:
    return {path.relative_to(root).as_posix() for path in (root / "app").rglob("*") if path.is_file()}


def test_the_steps_give_a_tree_whose_command_starts_and_writes_nothing(built: Path) -> None:
    before = files(built)
    done = start(built, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert "--port" in done.stdout
    assert files(built) == before


def test_without_settings_the_command_says_what_is_missing(built: Path) -> None:
    done = start(built, STAGE="dev")
    assert done.returncode == USER_ERROR
    assert "MONGO_URI" in done.stderr
    assert "Traceback" not in done.stderr


def test_every_module_of_the_api_is_there_with_its_bytecode(built: Path) -> None:
    code = "import api_services.http.app, api_services.http.connect, langfuse, openai, botocore.session"
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-S", "-B", "-c", code],
        env={"PYTHONPATH": f"{built}/app:{built}/app/site"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    names = files(built)
    assert f"app/api_services/__pycache__/queues.cpython-{sys.version_info[0]}{sys.version_info[1]}.pyc" in names
    services = {path.name for path in (built / "app/site/botocore/data").iterdir() if path.is_dir()}
    assert services == BOTOCORE_SERVICES


def test_the_image_holds_nothing_but_services_and_wheels(built: Path) -> None:
    assert {path.name for path in (built / "app").iterdir()} == {"api_services", "site"}
    assert not [name for name in files(built) if name.endswith("/.env") or "/pulumi/" in name or "/uv/" in name]
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    assert ignored[1] == "*"
    copied = {value.split()[0] for name, value in BUILD.steps if name == "COPY" and "--from" not in value}
    allowed = [line[1:] for line in ignored if line.startswith("!")]
    assert all(any(path == item or path.startswith(f"{item}/") for item in allowed) for path in copied)


def test_the_process_is_nobody_and_listens_where_the_load_balancer_asks() -> None:
    assert FINAL.last("USER") == "10001:10001"
    command = json.loads(FINAL.last("CMD"))
    assert command[command.index("--port") + 1] == str(PORT) == FINAL.last("EXPOSE")
    assert command[command.index("--host") + 1] == "0.0.0.0"  # noqa: S104
    assert FINAL.steps[-1][0] == "CMD"


def test_every_image_is_pinned_and_the_last_is_the_one_it_was_built_in() -> None:
    assert all(DIGEST.match(stage.image) for stage in (UV, BUILD, FINAL))
    assert BUILD.image == FINAL.image
    assert "RUN" not in [name for name, _ in FINAL.steps]
