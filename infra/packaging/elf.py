"""Reads what an ELF file needs to be loaded: machine, kind and symbol versions. Little-endian 64-bit files only."""

import re
import struct
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from infra.packaging.targets import Target

MAGIC: Final = b"\x7fELF"

MACHINES: Final[dict[int, str]] = {3: "x86", 40: "arm (32 bit)", 62: "x86_64", 183: "arm64", 243: "riscv"}

_PT_LOAD, _PT_DYNAMIC = 1, 2
_DT_NULL, _DT_STRTAB, _DT_VERNEED, _DT_VERNEEDNUM = 0, 5, 0x6FFFFFFE, 0x6FFFFFFF
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_PROGRAM = struct.Struct("<IIQQQQQQ")
_DYNAMIC = struct.Struct("<qQ")
_VERNEED = struct.Struct("<HHIII")
_VERNAUX = struct.Struct("<IHHII")
_TAG = re.compile(r"\.(cpython-\d+[a-z]*|abi3t?|pypy\d+)(-[\w-]+)?\.so$")
_GLIBC = re.compile(r"^GLIBC_(\d+)\.(\d+)")


class UnreadableElfError(ValueError):
    """The bytes begin as an ELF file and go on as something else."""


@dataclass(frozen=True, slots=True)
class Elf:
    """`versions` are the symbol versions the file asks its libraries for: `GLIBC_2.17`."""

    machine: int
    versions: frozenset[str]

    @property
    def machine_name(self) -> str:
        return MACHINES.get(self.machine, f"machine {self.machine}")

    @property
    def glibc(self) -> tuple[int, int] | None:
        """The newest glibc version asked for; none where the file asks for none."""
        found = [(int(match[1]), int(match[2])) for name in self.versions if (match := _GLIBC.match(name))]
        return max(found, default=None)


def read_elf(content: bytes) -> Elf:
    """Read the headers of `content`, which begins with `MAGIC`. Raises `UnreadableElfError`."""
    try:
        if content[4] != 2 or content[5] != 1:
            raise UnreadableElfError("not a little-endian 64-bit file")
        header = _HEADER.unpack_from(content)
        machine, program_offset, entry_size, entries = header[2], header[5], header[9], header[10]
        programs = [_PROGRAM.unpack_from(content, program_offset + index * entry_size) for index in range(entries)]
        return Elf(machine, frozenset(_needed_versions(content, programs)))
    except (struct.error, IndexError) as exc:
        raise UnreadableElfError("cut short") from exc


def _needed_versions(content: bytes, programs: list[tuple[int, ...]]) -> list[str]:
    loads = [program for program in programs if program[0] == _PT_LOAD]

    def file_offset(address: int) -> int:
        for _, _, offset, virtual, _, file_size, _, _ in loads:
            if virtual <= address < virtual + file_size:
                return offset + address - virtual
        raise UnreadableElfError(f"address {address:#x} is in no segment")

    dynamic: dict[int, int] = {}
    for program in programs:
        if program[0] != _PT_DYNAMIC:
            continue
        for position in range(program[2], program[2] + program[5], _DYNAMIC.size):
            tag, value = _DYNAMIC.unpack_from(content, position)
            if tag == _DT_NULL:
                break
            dynamic[tag] = value
    if _DT_VERNEED not in dynamic:
        return []
    strings = file_offset(dynamic[_DT_STRTAB])
    names: list[str] = []
    need = file_offset(dynamic[_DT_VERNEED])
    for _ in range(dynamic.get(_DT_VERNEEDNUM, 0)):
        _, count, _, first, following = _VERNEED.unpack_from(content, need)
        auxiliary = need + first
        for _ in range(count):
            _, _, _, name, step = _VERNAUX.unpack_from(content, auxiliary)
            start = strings + name
            names.append(content[start : content.index(b"\0", start)].decode("ascii", "replace"))
            auxiliary += step
        need += following
    return names


def fault_of(name: str, content: bytes, target: Target) -> str | None:
    """Why the file `name` cannot be loaded on `target`, as the end of a sentence; none where it can."""
    try:
        elf = read_elf(content)
    except UnreadableElfError as exc:
        return f"is not a readable ELF file ({exc})"
    if elf.machine != target.elf_machine:
        return f"is for {elf.machine_name}, the function is {target.architecture}"
    match = _TAG.search(PurePosixPath(name).name)
    tag = match[1] if match else None
    if tag is not None and tag not in {target.extension_tag, "abi3"}:
        return f"is built for {tag}, the function runs {target.extension_tag}"
    if elf.glibc is not None and elf.glibc > target.glibc:
        needed, present = (".".join(map(str, version)) for version in (elf.glibc, target.glibc))
        return f"needs glibc {needed}, the runtime has {present}"
    return None
