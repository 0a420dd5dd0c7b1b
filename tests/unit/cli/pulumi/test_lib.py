from pathlib import Path

import pytest

from api_services.errors import ConfigurationError, InvalidInputError
from cli.pulumi.lib import plan_run, shell_exports, stage_of
from local.stage import LocalStage
from toolchain.paths import ROOT
from toolchain.pulumi_cli import PulumiCli

CLI = PulumiCli(Path("/cli/bin/pulumi"), "3.274.1", has_host=True)


@pytest.mark.parametrize(
    ("arguments", "stage"),
    [
        (["preview", "-s", "dev"], "dev"),
        (["preview", "--stack", "dev"], "dev"),
        (["preview", "--stack=dev"], "dev"),
        (["preview", "-sdev"], "dev"),
        (["preview", "-s", "team/sophia/dev"], "dev"),
        (["preview"], None),
        (["preview", "--suppress-outputs"], None),
        (["preview", "-s"], None),
    ],
)
def test_the_stage_a_command_line_names(arguments: list[str], stage: str | None) -> None:
    assert stage_of(arguments) == stage


def test_a_wrong_stage_name_is_refused_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no stage 'devv'; there are dev, local, prod"):
        plan_run(["preview", "-s", "devv"], LocalStage(tmp_path), CLI, {}, scratch=tmp_path)


def test_a_new_stack_may_be_made(tmp_path: Path) -> None:
    run = plan_run(["stack", "init", "-s", "review"], LocalStage(tmp_path), CLI, {}, scratch=tmp_path)
    assert run.command == ["/cli/bin/pulumi", "stack", "init", "-s", "review"]


def test_an_aws_stage_sees_the_users_own_environment(tmp_path: Path) -> None:
    user = {"PATH": "/usr/bin", "AWS_PROFILE": "work", "PULUMI_BACKEND_URL": "s3://ours"}
    run = plan_run(["up", "-s", "dev"], LocalStage(tmp_path), CLI, user, scratch=tmp_path)
    assert run.command == ["/cli/bin/pulumi", "up", "-s", "dev"]
    assert run.environ["AWS_PROFILE"] == "work"
    assert run.environ["PULUMI_BACKEND_URL"] == "s3://ours"
    assert "local/aws/bin" not in run.environ["PATH"]
    assert run.cwd == ROOT


def test_the_local_stage_must_be_up(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"the local stage is not up .*run `\./sophia up`") as caught:
        plan_run(["stack", "output", "-s", "local"], LocalStage(tmp_path), CLI, {}, scratch=tmp_path)
    assert caught.value.code == "stage_not_up"


@pytest.mark.parametrize("arguments", [["up", "-s", "dev"], ["destroy", "-s", "prod"], ["preview"], []])
def test_offline_is_for_previews_of_a_named_stage_only(tmp_path: Path, arguments: list[str]) -> None:
    with pytest.raises(InvalidInputError, match="preview -s STAGE --offline"):
        plan_run([*arguments, "--offline"], LocalStage(tmp_path), CLI, {}, scratch=tmp_path)


def test_the_exports_bring_the_cli_and_python_but_not_the_local_plugin() -> None:
    lines = shell_exports(CLI, {"PATH": "/usr/bin", "HOME": "/x"})
    path = next(line for line in lines if line.startswith("export PATH="))
    assert path.startswith("export PATH=/cli/bin:")
    assert path.endswith(":/usr/bin")
    assert "local/aws/bin" not in path
    assert not [line for line in lines if "BACKEND" in line or "AWS" in line or "HOME" in line]


def test_the_exports_survive_a_folder_with_spaces_and_quotes() -> None:
    odd = PulumiCli(Path("/it's here/bin/pulumi"), "3.274.1", has_host=True)
    path = next(line for line in shell_exports(odd, {"PATH": "/usr/bin"}) if line.startswith("export PATH="))
    assert "'/it'\"'\"'s here/bin:" in path


def test_exporting_twice_does_not_make_path_longer() -> None:
    first = shell_exports(CLI, {"PATH": "/usr/bin"})
    path = next(line for line in first if line.startswith("export PATH=")).removeprefix("export PATH=")
    again = shell_exports(CLI, {"PATH": path, "PULUMI_SKIP_UPDATE_CHECK": "true", "SOPHIA_ROOT": str(ROOT)})
    assert again == []
