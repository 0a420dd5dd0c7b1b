"""Which files of the tree may enter a package."""

from pathlib import Path

import pytest

from infra.packaging.errors import LinkRefusedError
from infra.packaging.sources import data_files, folder_files
from tests.support.packages import make_repository, write


def names(root: Path, folder: str = "functions/jobs") -> list[str]:
    return [path.relative_to(root).as_posix() for path in folder_files(root / folder, root)]


def test_rubbish_stays_out_at_every_depth(tmp_path: Path) -> None:
    root = make_repository(tmp_path)
    before = names(root)
    for rubbish in (
        "__pycache__/x.cpython-39.pyc",
        "sub/__pycache__/y.pyc",
        ".venv/lib/z.py",
        ".env",
        "sub/.env",
        "tests/test_handler.py",
        "handler.py.map",
        "old.pyc",
        ".git/config.txt",
        "jobs.egg-info/top_level.txt",
        "node_modules/a/b.json",
        "notes.md",
        "site.pth",
    ):
        write(root / "functions/jobs" / rubbish, "OPENAI_API_KEY=sk-test")
    assert names(root) == before == ["functions/jobs/__init__.py", "functions/jobs/handler.py"]


def test_data_beside_modules_is_taken(tmp_path: Path) -> None:
    root = make_repository(tmp_path)
    write(root / "api_services/orders/prompts/order.txt", "hello")
    write(root / "api_services/orders/deeper/module.py", "")
    write(root / "api_services/orders/deeper/data.json", "{}")
    found = [
        path.relative_to(root / "api_services/orders").as_posix()
        for path in data_files(root / "api_services/orders", root)
    ]
    assert found == ["prompts/order.txt", "table.json"]


def test_links_inside_the_repository_are_followed(tmp_path: Path) -> None:
    root = make_repository(tmp_path)
    write(root / "functions/shared/rules.py", "RULE = 1\n")
    (root / "functions/jobs/shared").symlink_to("../shared")
    assert "functions/jobs/shared/rules.py" in names(root)


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("../missing", "links to nothing"),
        ("/etc", "links out of the repository"),
        (".", "links to a folder that holds it"),
    ],
    ids=["dangling", "leaving", "looping"],
)
def test_any_other_link_is_refused_by_name(tmp_path: Path, target: str, words: str) -> None:
    root = make_repository(tmp_path)
    (root / "functions/jobs/shared").symlink_to(target)
    with pytest.raises(LinkRefusedError, match=f"functions/jobs/shared {words}"):
        names(root)


def test_a_link_to_itself_is_refused(tmp_path: Path) -> None:
    root = make_repository(tmp_path)
    (root / "functions/jobs/a.py").symlink_to("a.py")
    with pytest.raises(LinkRefusedError, match=r"functions/jobs/a\.py links to nothing"):
        names(root)
