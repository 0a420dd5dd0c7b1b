"""What a function's requirements may say, and which files of a distribution are kept."""

from pathlib import Path

import pytest

from infra.packaging import distributions
from infra.packaging.builder import undeclared
from infra.packaging.distributions import resolve
from infra.packaging.errors import PackagingError, RequirementError
from infra.packaging.imports import Reached
from infra.packaging.targets import Target
from infra.packaging.wheels import read_pins, read_requirements
from tests.support.packages import write


def test_requirements_are_names_in_a_fixed_order(tmp_path: Path) -> None:
    write(tmp_path / "requirements.txt", "pymongo\n\n# why\nBotocore  # x\nhttpx[http2] ; a == 'b'\n")
    assert read_requirements(tmp_path / "requirements.txt") == ("Botocore", "httpx[http2] ; a == 'b'", "pymongo")


@pytest.mark.parametrize(
    "line", ["pymongo==4.20.1", "pymongo>=4", "-r other.txt", "./wheel.whl", "a @ file:a", "--pre"]
)
def test_anything_but_a_name_is_refused_with_its_line(tmp_path: Path, line: str) -> None:
    write(tmp_path / "jobs/requirements.txt", f"pydantic\n{line}\n")
    with pytest.raises(RequirementError, match=r"jobs/requirements\.txt line 2: write the name alone"):
        read_requirements(tmp_path / "jobs/requirements.txt")


def test_pins_are_read_by_normalised_name(tmp_path: Path) -> None:
    write(tmp_path / "p.txt", "Typing_Extensions==4.16.0\n    # via x\ncolorama==0.4.6 ; sys_platform == 'win32'\n")
    assert read_pins(tmp_path / "p.txt") == {"typing-extensions": "4.16.0", "colorama": "0.4.6"}


def test_a_name_without_a_pin_is_refused_before_anything_is_installed(tmp_path: Path) -> None:
    write(tmp_path / "requirements.txt", "six==1.17.0\n")
    with pytest.raises(RequirementError, match="attrs is not pinned"):
        resolve(("attrs",), tmp_path / "requirements.txt", Target("arm64", "3.13"), None, tmp_path / "cache")


def test_an_import_that_no_named_requirement_provides_is_named_with_its_place() -> None:
    reached = Reached(third_party={"bson": "api_services/mongo.py:3", "google": "a.py:1", "nowhere": "b.py:9"})
    providers = {"bson": {"pymongo"}, "google": {"protobuf", "googleapis-common-protos"}}
    assert undeclared(reached, ("protobuf",), providers) == [
        "api_services/mongo.py:3 imports bson; name pymongo",
        "b.py:9 imports nowhere; name the package that provides nowhere",
    ]
    assert undeclared(reached, ("PyMongo", "protobuf"), providers)[0].startswith("b.py:9")


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("pymongo/client.py", True),
        ("pymongo/_c.cpython-313-aarch64-linux-gnu.so", True),
        ("x-1.dist-info/METADATA", True),
        ("x-1.dist-info/entry_points.txt", True),
        ("x-1.dist-info/licenses/LICENSE", True),
        ("x-1.dist-info/RECORD", False),
        ("x-1.dist-info/INSTALLER", False),
        ("x-1.dist-info/REQUESTED", False),
        ("x-1.dist-info/direct_url.json", False),
        ("x-1.dist-info/sboms/a.json", False),
        ("bin/script", False),
        ("../bin/script", False),
        ("a/__pycache__/b.cpython-311.pyc", False),
        ("a/tests/test_b.py", False),
        ("distutils-precedence.pth", False),
        ("a/py.typed", False),
        ("a/b.pyi", False),
        ("botocore/data/sqs/2012-11-05/service-2.json.gz", True),
        ("botocore/data/endpoints.json", True),
        ("botocore/data/ec2/2016-11-15/service-2.json.gz", False),
        ("botocore/data/sqs/2012-11-05/examples-1.json", False),
        ("boto3/data/sqs/2012-11-05/resources-1.json", False),
    ],
)
def test_a_distribution_is_pruned_to_what_runs(name: str, kept: bool) -> None:
    assert distributions._kept(name, "x-1.dist-info") is kept  # pyright: ignore[reportPrivateUsage]


def test_unknown_runtimes_are_refused_with_the_known_ones() -> None:
    with pytest.raises(PackagingError, match=r"Python '3\.8': choose one of 3\.11"):
        Target("arm64", "3.8")
    with pytest.raises(PackagingError, match="architecture 'arm': Lambda has x86_64 and arm64"):
        Target("arm", "3.13")  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("architecture", "python", "platform"),
    [("arm64", "3.13", "aarch64-manylinux_2_34"), ("x86_64", "3.11", "x86_64-manylinux_2_17")],
)
def test_wheels_are_chosen_for_the_runtimes_own_glibc(architecture: str, python: str, platform: str) -> None:
    assert Target(architecture, python).uv_platform == platform  # pyright: ignore[reportArgumentType]
