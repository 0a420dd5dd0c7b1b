"""Zips whose bytes depend on names and contents alone."""

import io
import zipfile
from pathlib import Path

from infra.packaging.archive import content_of, entry, write_archive


def test_zipfile_reads_what_is_written(tmp_path: Path) -> None:
    files = {"b/ü.py": b"x = 1\n" * 100, "a.txt": b"", "c.bin": bytes(range(256))}
    path = tmp_path / "a.zip"
    write_archive(path, [entry(name, content, executable=name == "c.bin") for name, content in files.items()])
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        assert {name: archive.read(name) for name in archive.namelist()} == files
        assert archive.namelist() == sorted(files)
        modes = {info.filename: info.external_attr >> 16 for info in archive.infolist()}
        assert modes == {"a.txt": 0o100644, "b/ü.py": 0o100644, "c.bin": 0o100755}
        assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert {info.create_system for info in archive.infolist()} == {3}


def test_the_order_of_entries_changes_nothing(tmp_path: Path) -> None:
    entries = [entry(name, name.encode() * 50) for name in ("z", "a", "m/n")]
    write_archive(tmp_path / "1.zip", entries)
    write_archive(tmp_path / "2.zip", reversed(entries))
    assert (tmp_path / "1.zip").read_bytes() == (tmp_path / "2.zip").read_bytes()


def test_what_compression_would_grow_is_stored() -> None:
    assert not entry("a", b"xy").deflated
    assert entry("a", b"x" * 100).deflated
    assert content_of(entry("a", b"x" * 100)) == b"x" * 100
    assert content_of(entry("a", b"xy")) == b"xy"


def test_an_empty_archive_is_an_archive(tmp_path: Path) -> None:
    write_archive(tmp_path / "a.zip", [])
    assert zipfile.ZipFile(io.BytesIO((tmp_path / "a.zip").read_bytes())).namelist() == []
