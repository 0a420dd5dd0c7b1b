import os
import stat
from pathlib import Path

import pytest

from api_services.errors import ConfigurationError
from local.run_state import RunState, ServiceRecord, open_state_dir, read_run_state, write_private, write_run_state
from toolchain.paths import StagePaths

RECORD = ServiceRecord(pid=4242, started="100", port=5001, fingerprint="f")


@pytest.fixture
def paths(tmp_path: Path) -> StagePaths:
    return StagePaths(tmp_path)


def test_nothing_recorded_is_an_empty_state(paths: StagePaths) -> None:
    assert read_run_state(paths) == RunState()


def test_what_is_written_is_read_back(paths: StagePaths) -> None:
    state = RunState(services={"api": RECORD}, ports={"api": 5001}, deployed_to=RECORD, outputs={"q": "url"})
    write_run_state(paths, state)
    assert read_run_state(paths) == state


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"\xff\xfe",
        b'{"version": 2}',
        b'{"services": {"api": {"pid": 1, "started": "1", "port": 1, "fingerprint": "f"}}}',
        b'{"unknown": 1}',
    ],
    ids=["empty", "cut off", "a list", "not text", "a later version", "the pid of init", "an unknown field"],
)
def test_a_damaged_record_is_refused_with_its_remedy_and_left_as_it_is(paths: StagePaths, content: bytes) -> None:
    paths.run_file.write_bytes(content)
    with pytest.raises(ConfigurationError, match=r"run\.json cannot be read .*run `\./sophia down`") as caught:
        read_run_state(paths)
    assert caught.value.code == "state_corrupt"
    assert paths.run_file.read_bytes() == content


def test_a_private_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    umask = os.umask(0)
    try:
        write_private(tmp_path / "keys", "secret")
    finally:
        os.umask(umask)
    assert stat.S_IMODE((tmp_path / "keys").stat().st_mode) == 0o600


def test_a_file_where_the_state_folder_should_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("in the way")
    with pytest.raises(ConfigurationError, match="cannot be used") as caught:
        open_state_dir(StagePaths(tmp_path / "state"))
    assert caught.value.code == "state_unusable"
