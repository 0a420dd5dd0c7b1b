"""What the headers of a shared object say about where it can be loaded."""

import sys
from pathlib import Path

import pydantic_core
import pytest

from infra.packaging.elf import UnreadableElfError, fault_of, read_elf
from infra.packaging.targets import Target
from tests.support.packages import make_elf

ARM = Target("arm64", "3.13")
NAME = "pydantic_core/_pydantic_core.cpython-313-aarch64-linux-gnu.so"


def test_machine_and_symbol_versions_are_read() -> None:
    elf = read_elf(make_elf(183, ("GLIBC_2.17", "GLIBC_2.28", "GLIBC_2.4")))
    assert (elf.machine, elf.glibc) == (183, (2, 28))
    assert elf.versions == {"GLIBC_2.17", "GLIBC_2.28", "GLIBC_2.4"}


@pytest.mark.skipif(sys.platform != "linux", reason="reads a Linux shared object of this environment")
def test_a_real_shared_object_is_read_as_its_own_machine() -> None:
    (path,) = Path(pydantic_core.__file__).parent.glob("*.so")
    elf = read_elf(path.read_bytes())
    assert elf.machine_name in {"x86_64", "arm64"}
    assert elf.glibc is not None
    assert elf.glibc >= (2, 14)


def test_what_fits_has_no_fault() -> None:
    assert fault_of(NAME, make_elf(183, ("GLIBC_2.34",)), ARM) is None
    assert fault_of("a/b.abi3.so", make_elf(183), ARM) is None
    assert fault_of("a.libs/libz.so.1", make_elf(183), ARM) is None


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        (NAME, make_elf(62), ("x86_64", "arm64")),
        (NAME, make_elf(40), ("arm (32 bit)", "arm64")),
        (NAME.replace("313", "312"), make_elf(183), ("cpython-312", "cpython-313")),
        (NAME.replace("313", "313t"), make_elf(183), ("cpython-313t", "cpython-313")),
        (NAME, make_elf(183, ("GLIBC_2.17", "GLIBC_2.35")), ("2.35", "2.34")),
        (NAME, make_elf(183)[:90], ("not a readable ELF file",)),
    ],
    ids=["another machine", "32 bit", "another Python", "free-threaded Python", "a newer glibc", "cut short"],
)
def test_what_the_runtime_cannot_load_is_said_with_both_sides(
    name: str, content: bytes, words: tuple[str, ...]
) -> None:
    fault = fault_of(name, content, ARM)
    assert fault is not None
    assert all(word in fault for word in words), fault


def test_glibc_of_an_older_runtime_is_older() -> None:
    content = make_elf(62, ("GLIBC_2.28",))
    assert fault_of("a.so", content, Target("x86_64", "3.11")) is not None
    assert fault_of("a.so", content, Target("x86_64", "3.12")) is None


def test_versions_compare_as_numbers() -> None:
    assert read_elf(make_elf(62, ("GLIBC_2.4", "GLIBC_2.17"))).glibc == (2, 17)


@pytest.mark.parametrize("length", [4, 20, 70, 130])
def test_any_cut_is_an_error_and_never_a_crash(length: int) -> None:
    with pytest.raises(UnreadableElfError):
        read_elf(make_elf(62, ("GLIBC_2.17",))[:length])
