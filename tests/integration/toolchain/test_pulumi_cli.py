"""Which Pulumi CLI is used, and that ours run programs, with stand-ins for what would take minutes or a network."""

import os
import subprocess
import textwrap
from collections.abc import Mapping
from pathlib import Path

import pytest

from api_services.errors import ConfigurationError
from toolchain import pulumi_cli
from toolchain.paths import ROOT
from toolchain.pulumi_cli import VERSION, PulumiCli, environment_with, find_or_obtain

pytestmark = pytest.mark.integration


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{textwrap.dedent(text)}")
    path.chmod(0o755)
    return path


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """A user with an empty cache, a PATH with little on it, and no way to the internet."""
    return {
        "PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin",
        "HOME": str(tmp_path / "home"),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "HTTPS_PROXY": "http://127.0.0.1:9",
        "https_proxy": "http://127.0.0.1:9",
    }


def silent(_: str) -> None:
    """Progress that nobody watches."""


def test_a_sufficient_cli_on_path_is_used(environ: Mapping[str, str], tmp_path: Path) -> None:
    script(tmp_path / "bin" / "pulumi", "echo v3.999.0")
    script(tmp_path / "bin" / "pulumi-language-python", "")
    assert find_or_obtain(environ, silent) == PulumiCli(tmp_path / "bin" / "pulumi", "3.999.0", has_host=True)


def test_a_cli_on_path_without_a_language_host_is_given_ours(environ: Mapping[str, str], tmp_path: Path) -> None:
    script(tmp_path / "bin" / "pulumi", "echo v3.999.0")
    cli = find_or_obtain(environ, silent)
    assert environment_with(cli, environ)["PATH"].split(":")[:2] == [
        str(tmp_path / "bin"),
        str(ROOT / "toolchain" / "bin"),
    ]


@pytest.mark.parametrize(
    "answer", ["echo v3.1.0", "echo v4.0.0", "echo v2.9.0", "echo hello", "exit 3"], ids=lambda answer: answer
)
def test_what_is_too_old_or_no_pulumi_at_all_is_not_used(
    environ: Mapping[str, str], tmp_path: Path, answer: str
) -> None:
    script(tmp_path / "bin" / "pulumi", answer)
    cached = script(tmp_path / "cache" / "sophia" / "pulumi" / VERSION / "bin" / "pulumi", f"echo v{VERSION}")
    assert find_or_obtain(environ, silent).path == cached


def test_a_cached_cli_gets_our_language_host_and_an_official_one_is_left_alone(
    environ: Mapping[str, str], tmp_path: Path
) -> None:
    folder = tmp_path / "cache" / "sophia" / "pulumi" / VERSION / "bin"
    script(folder / "pulumi", f"echo v{VERSION}")
    assert find_or_obtain(environ, silent).has_host
    ours = ROOT / "toolchain" / "bin" / "pulumi-language-python"
    assert (folder / "pulumi-language-python").read_bytes() == ours.read_bytes()
    (folder / "pulumi-language-python").write_bytes(b"\x7fELF official")
    find_or_obtain(environ, silent)
    assert (folder / "pulumi-language-python").read_bytes() == b"\x7fELF official"


def test_without_any_way_the_error_names_all_three(environ: Mapping[str, str], tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        find_or_obtain(environ, silent)
    assert caught.value.code == "pulumi_cli_missing"
    message = caught.value.message
    assert "put version" in message
    assert "installer" in message
    assert "there is no 'go' on PATH" in message
    assert "\n" not in message
    assert list((tmp_path / "cache" / "sophia" / "pulumi").glob("*.part-*")) == []


def test_where_the_installer_cannot_download_go_builds_it_into_the_cache(
    environ: Mapping[str, str], tmp_path: Path
) -> None:
    script(
        tmp_path / "bin" / "go",
        f"""
        while [ "$1" != -o ]; do shift; done
        mkdir -p "$(dirname "$2")"
        printf '#!/bin/sh\\necho v{VERSION}\\n' > "$2"
        chmod +x "$2"
        """,
    )
    said: list[str] = []
    cli = find_or_obtain(environ, said.append)
    assert cli.path == tmp_path / "cache" / "sophia" / "pulumi" / VERSION / "bin" / "pulumi"
    assert any("building the Pulumi CLI" in line for line in said)
    assert any("installer" in line for line in said)


def test_what_a_killed_build_left_is_not_taken_for_a_cli(environ: Mapping[str, str], tmp_path: Path) -> None:
    leftover = tmp_path / "cache" / "sophia" / "pulumi" / f"{VERSION}.part-abc" / "bin" / "pulumi"
    script(leftover, f"echo v{VERSION}")
    with pytest.raises(ConfigurationError, match="no Pulumi CLI"):
        find_or_obtain(environ, silent)
    assert not leftover.exists()


def test_the_version_to_build_is_the_one_of_the_go_module() -> None:
    module = (ROOT / "toolchain" / "pulumi_build" / "go.mod").read_text()
    assert f"require github.com/pulumi/pulumi/pkg/v3 v{pulumi_cli.VERSION}\n" in module


def test_our_language_host_runs_a_program_and_tells_its_failure(tmp_path: Path) -> None:
    cli = find_or_obtain(os.environ, silent)
    project = tmp_path / "project"
    project.mkdir()
    (project / "Pulumi.yaml").write_text("name: hello\nruntime: python\n")
    (project / "neighbour.py").write_text("ANSWER = 42\n")
    program = project / "__main__.py"
    program.write_text("import pulumi\nfrom neighbour import ANSWER\npulumi.export('answer', ANSWER)\n")
    environ = {
        **environment_with(cli, os.environ),
        "PULUMI_BACKEND_URL": tmp_path.as_uri(),
        "PULUMI_HOME": str(tmp_path / "home"),
        "PULUMI_CONFIG_PASSPHRASE": "test",
    }

    def pulumi(*arguments: str) -> "subprocess.CompletedProcess[str]":
        command = [str(cli.path), *arguments, "--non-interactive"]
        return subprocess.run(command, cwd=project, env=environ, capture_output=True, text=True, check=False)  # noqa: S603

    assert pulumi("stack", "init", "one").returncode == 0
    up = pulumi("up", "-s", "one", "--yes", "--skip-preview")
    assert up.returncode == 0, up.stdout + up.stderr
    assert pulumi("stack", "output", "answer", "-s", "one").stdout == "42\n"
    assert pulumi("preview", "-s", "one", "--expect-no-changes").returncode == 0
    program.write_text("raise ValueError('no such queue')\n")
    failed = pulumi("preview", "-s", "one")
    assert failed.returncode != 0
    assert "no such queue" in failed.stdout + failed.stderr
