import stat
from pathlib import Path
from typing import Any

import pytest
import yaml

from api_services.errors import ConfigurationError
from local.pulumi_stage import PLUGIN_FOLDER, StagePulumi, clean_environ
from toolchain.paths import ROOT, StagePaths
from toolchain.pulumi_cli import PulumiCli
from toolchain.pulumi_output import explain_failure
from toolchain.stage_files import check_stage, read_stage_file

USER = {
    "PATH": "/usr/bin",
    "HOME": "/somewhere",
    "AWS_PROFILE": "production",
    "AWS_ACCESS_KEY_ID": "AKIAREAL",
    "AWS_ENDPOINT_URL_SQS": "https://sqs.example",
    "PULUMI_ACCESS_TOKEN": "pul-real",
    "PULUMI_BACKEND_URL": "s3://real",
    "PULUMI_HOME": "/somewhere/.pulumi",
    "OPENAI_API_KEY": "sk-real",
    "MONGO_URI": "mongodb://real",
    "PYTHONPATH": "/somewhere/python",
    "HTTPS_PROXY": "http://proxy.example",
}


@pytest.fixture
def pulumi(tmp_path: Path) -> StagePulumi:
    cli = PulumiCli(Path("/cli/bin/pulumi"), "3.274.1", has_host=True)
    return StagePulumi(StagePaths(tmp_path, ROOT), cli, USER)


def test_nothing_of_the_users_accounts_reaches_the_local_stage(pulumi: StagePulumi, tmp_path: Path) -> None:
    environ = pulumi.environ("http://127.0.0.1:4000")
    assert [value for value in environ.values() if "real" in value.lower() or "production" in value] == []
    assert environ["PULUMI_BACKEND_URL"] == (tmp_path / "backend").as_uri()
    assert environ["PULUMI_HOME"] == str(tmp_path / "pulumi-home")
    assert environ["AWS_ENDPOINT_URL"] == "http://127.0.0.1:4000"
    assert environ["PULUMI_SKIP_UPDATE_CHECK"] == "true"


def test_loopback_never_goes_through_the_users_proxy() -> None:
    environ = clean_environ(USER)
    assert environ["HTTPS_PROXY"] == "http://proxy.example"
    assert environ["NO_PROXY"] == environ["no_proxy"] == "127.0.0.1,localhost"


def test_the_local_plugin_comes_before_any_other(pulumi: StagePulumi) -> None:
    assert pulumi.environ("http://127.0.0.1:4000")["PATH"].split(":")[0] == str(PLUGIN_FOLDER)


def test_an_offline_preview_has_no_endpoint_and_says_so_to_the_plugin(pulumi: StagePulumi, tmp_path: Path) -> None:
    environ = pulumi.offline_environ(tmp_path / "scratch")
    assert environ["SOPHIA_AWS_OFFLINE"] == "1"
    assert "AWS_ENDPOINT_URL" not in environ
    assert environ["PULUMI_BACKEND_URL"] == (tmp_path / "scratch").as_uri()


def test_the_passphrase_is_made_once_and_is_its_owners_alone(pulumi: StagePulumi, tmp_path: Path) -> None:
    first = Path(pulumi.environ("http://127.0.0.1:1")["PULUMI_CONFIG_PASSPHRASE_FILE"])
    passphrase = first.read_text()
    pulumi.environ("http://127.0.0.1:1")
    assert first.read_text() == passphrase
    assert len(passphrase) >= 32
    assert stat.S_IMODE(first.stat().st_mode) == 0o600


def test_a_wrong_stage_name_is_answered_with_the_right_ones() -> None:
    with pytest.raises(ConfigurationError, match=r"no stage 'devv'; there are dev, local, prod\.") as caught:
        check_stage(ROOT, "devv")
    assert caught.value.code == "unknown_stage"


@pytest.mark.parametrize(
    "content",
    [b"config:\n  a: [", b"\xff\xfe\x00", b"- a\n- list", b"config: text", b""],
    ids=["broken YAML", "not text", "a list", "config is no mapping", "empty"],
)
def test_an_unreadable_configuration_is_one_sentence(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "Pulumi.dev.yaml"
    path.write_bytes(content)
    with pytest.raises(ConfigurationError, match=r"^Pulumi\.dev\.yaml .*mend it or restore it") as caught:
        read_stage_file(path)
    assert caught.value.code == "config_unreadable"
    assert "\n" not in caught.value.message


def test_a_missing_configuration_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"Pulumi\.dev\.yaml cannot be read"):
        read_stage_file(tmp_path / "Pulumi.dev.yaml")


def test_the_generated_configuration_adds_to_the_stages_own_and_hides_what_it_cannot_decrypt(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.dev.yaml").write_text(
        "secretsprovider: awskms://alias/real\nencryptedkey: abc\n"
        "config:\n  sophia:a: 1\n  sophia:b: {secure: v1:xyz}\n  sophia:c: old\n"
    )
    pulumi = StagePulumi(StagePaths(tmp_path / "s", tmp_path), PulumiCli(Path("p"), "3.274.1", has_host=True), {})
    pulumi.write_config("dev", tmp_path / "out.yaml", "v1:salt", {"sophia:c": "new"})
    written: dict[str, Any] = yaml.safe_load((tmp_path / "out.yaml").read_text())
    assert written == {
        "encryptionsalt": "v1:salt",
        "config": {"sophia:a": 1, "sophia:b": "placeholder", "sophia:c": "new"},
    }


def test_a_failed_deployment_is_explained_by_its_causes_alone() -> None:
    output = (
        "Diagnostics:\n"
        "    error: update failed\n"
        "    error: python inline source runtime error: queue 'x': visibility is 5\n"
        "    Traceback (most recent call last):\n"
        "    error: an unhandled error occurred: python inline source runtime error: queue 'x': visibility is 5\n"
    )
    assert explain_failure(output) == "queue 'x': visibility is 5"


def test_a_failure_without_an_error_line_is_explained_by_its_last_words() -> None:
    assert explain_failure("starting\n\nkilled\n") == "starting | killed"
