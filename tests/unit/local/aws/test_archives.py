"""The bytes of a function's package."""

import io
import zipfile
from pathlib import Path

import pytest

from local.aws.archives import ArchiveError, zip_bytes


def names(content: bytes) -> list[str]:
    return zipfile.ZipFile(io.BytesIO(content)).namelist()


def test_a_zip_file_goes_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "package.zip"
    with zipfile.ZipFile(path, "w") as package:
        package.writestr("handler.py", "x = 1")
    assert zip_bytes({"path": str(path)}) == path.read_bytes()


def test_a_folder_is_zipped_the_same_way_every_time(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "b.py").write_text("b")
    (tmp_path / "a.py").write_text("a")
    first = zip_bytes({"path": str(tmp_path)})
    (tmp_path / "a.py").touch()
    assert zip_bytes({"path": str(tmp_path)}) == first
    assert names(first) == ["a.py", "lib/b.py"]


def test_assets_are_put_together(tmp_path: Path) -> None:
    (tmp_path / "data.txt").write_text("data")
    content = zip_bytes(
        {
            "assets": {
                "handler.py": {"text": "x = 1"},
                "data.txt": {"path": str(tmp_path / "data.txt")},
                "nested": {"assets": {"n.py": {"text": "n"}}},
                "folder": {"path": str(tmp_path)},
            }
        }
    )
    assert names(content) == ["data.txt", "folder/data.txt", "handler.py", "nested/n.py"]


def test_a_missing_package_is_named(tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match=r"gone\.zip cannot be read"):
        zip_bytes({"path": str(tmp_path / "gone.zip")})


def test_what_is_no_zip_file_is_refused_by_path(tmp_path: Path) -> None:
    (tmp_path / "handler.py").write_text("x = 1")
    with pytest.raises(ArchiveError, match=r"handler\.py is neither a folder nor a zip file"):
        zip_bytes({"path": str(tmp_path / "handler.py")})


def test_remote_and_missing_archives_are_refused() -> None:
    for archive in (None, {"uri": "https://example.com/x.zip"}, {"assets": {"a": {"uri": "https://example.com"}}}):
        with pytest.raises(ArchiveError):
            zip_bytes(archive)
