import stat
from pathlib import Path

import pytest

from api_services.errors import ConfigurationError
from local.secret_values import bearer_keys
from toolchain.paths import StagePaths


def test_keys_are_made_once_one_for_each_role_and_kept_private(tmp_path: Path) -> None:
    paths = StagePaths(tmp_path)
    keys = bearer_keys(paths)
    assert set(keys) == {"bot", "portal", "admin"}
    assert len(set(keys.values())) == 3
    assert bearer_keys(paths) == keys
    assert stat.S_IMODE(paths.keys_file.stat().st_mode) == 0o600


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"bot": "x"}'])
def test_damaged_keys_are_refused_with_their_remedy(tmp_path: Path, content: str) -> None:
    paths = StagePaths(tmp_path)
    paths.keys_file.write_text(content)
    with pytest.raises(ConfigurationError, match="remove the file") as caught:
        bearer_keys(paths)
    assert caught.value.code == "state_corrupt"
