"""What a function runs on: architecture, Python and the C library of its Lambda runtime."""

import platform
import sys
from dataclasses import dataclass
from typing import Final, Literal

from infra.packaging.errors import PackagingError

Architecture = Literal["x86_64", "arm64"]

ARCHITECTURES: Final[tuple[Architecture, ...]] = ("x86_64", "arm64")

GLIBC: Final[dict[str, tuple[int, int]]] = {
    "3.11": (2, 26),
    "3.12": (2, 34),
    "3.13": (2, 34),
    "3.14": (2, 34),
}
"""By Python version. Amazon Linux 2 has glibc 2.26, Amazon Linux 2023 has 2.34 (Lambda guide, lambda-runtimes)."""

_WHEEL_LEVELS: Final[tuple[tuple[int, int], ...]] = ((2, 34), (2, 28), (2, 17))
"""manylinux levels that wheels are published for and uv can select, newest first."""

DEFAULT_ARCHITECTURE: Final[Architecture] = "arm64"
DEFAULT_PYTHON_VERSION: Final = "3.13"


def host_architecture() -> Architecture:
    """This machine's architecture by Lambda's name."""
    return "arm64" if platform.machine().lower() in {"arm64", "aarch64"} else "x86_64"


def host_python_version() -> str:
    """The running Python's minor version: `3.13`."""
    return f"{sys.version_info[0]}.{sys.version_info[1]}"


@dataclass(frozen=True, slots=True)
class Target:
    """One Lambda runtime: `Target("arm64", "3.13")`."""

    architecture: Architecture
    python_version: str

    def __post_init__(self) -> None:
        if self.architecture not in ARCHITECTURES:
            raise PackagingError(f"architecture '{self.architecture}': Lambda has {' and '.join(ARCHITECTURES)}")
        if self.python_version not in GLIBC:
            raise PackagingError(f"Python '{self.python_version}': choose one of {', '.join(GLIBC)}")

    def __str__(self) -> str:
        return f"{self.architecture}, Python {self.python_version}"

    @property
    def machine(self) -> str:
        """The architecture by the name that wheels and ELF tools use."""
        return "aarch64" if self.architecture == "arm64" else "x86_64"

    @property
    def elf_machine(self) -> int:
        """`e_machine` of the architecture's binaries: EM_X86_64 or EM_AARCH64."""
        return 183 if self.architecture == "arm64" else 62

    @property
    def glibc(self) -> tuple[int, int]:
        """The newest glibc whose symbols the runtime has."""
        return GLIBC[self.python_version]

    @property
    def uv_platform(self) -> str:
        """Value of uv's `--python-platform`: the newest manylinux level that the runtime's glibc satisfies."""
        major, minor = next(level for level in _WHEEL_LEVELS if level <= self.glibc)
        return f"{self.machine}-manylinux_{major}_{minor}"

    @property
    def extension_tag(self) -> str:
        """Tag of a compiled module's file name: `cpython-313`."""
        return f"cpython-{self.python_version.replace('.', '')}"
