"""Zip archives whose bytes depend on names and contents alone.

Written by hand because entries arrive compressed: a distribution is compressed once and copied into every function's
zip, which `zipfile` cannot do.
"""

import struct
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

COMPRESSION_LEVEL: Final = 6
COMPRESSOR: Final = f"zlib {zlib.ZLIB_RUNTIME_VERSION} level {COMPRESSION_LEVEL}"
"""Noted in every record: another zlib may compress the same contents to other bytes."""

_DATE: Final = (1 << 5) | 1
"""1980-01-01, the first day a zip can name, in DOS form; the time is 0."""

_UNIX: Final = 3
_UTF8_NAME: Final = 0x800
_STORED, _DEFLATED = 0, 8
_LOCAL = struct.Struct("<4sHHHHHIIIHH")
_CENTRAL = struct.Struct("<4sBBHHHHHIIIHHHHHII")
_END = struct.Struct("<4sHHHHIIH")
_LIMIT: Final = 0xFFFFFFFF
"""Without zip64, which Lambda's 250 MB limit never needs."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One file of an archive, compressed already."""

    name: str
    crc: int
    size_bytes: int
    data: bytes
    deflated: bool
    executable: bool = False


def entry(name: str, content: bytes, *, executable: bool = False) -> Entry:
    """Compress `content`; stored as it is where compression does not make it smaller."""
    compressor = zlib.compressobj(COMPRESSION_LEVEL, zlib.DEFLATED, -15)
    packed = compressor.compress(content) + compressor.flush()
    deflated = len(packed) < len(content)
    return Entry(name, zlib.crc32(content), len(content), packed if deflated else content, deflated, executable)


def content_of(item: Entry) -> bytes:
    """The file's bytes as they were before compression."""
    return zlib.decompress(item.data, -15) if item.deflated else item.data


def write_archive(path: Path, entries: Iterable[Entry]) -> None:
    """Write `entries` in the order of their names, each dated 1980-01-01 with mode 0644, or 0755 if executable."""
    ordered = sorted(entries, key=lambda item: item.name)
    central = bytearray()
    offset = 0
    with path.open("wb") as output:
        for item in ordered:
            name = item.name.encode()
            method = _DEFLATED if item.deflated else _STORED
            common = (0, _DATE, item.crc, len(item.data), item.size_bytes)
            local = _LOCAL.pack(b"PK\x03\x04", 20, _UTF8_NAME, method, *common, len(name), 0)
            mode = 0o100755 if item.executable else 0o100644
            central += _CENTRAL.pack(
                b"PK\x01\x02", 20, _UNIX, 20, _UTF8_NAME, method, *common, len(name), 0, 0, 0, 0, mode << 16, offset
            )
            central += name
            output.write(local)
            output.write(name)
            output.write(item.data)
            offset += len(local) + len(name) + len(item.data)
        if offset > _LIMIT or len(ordered) > 0xFFFF:
            raise ValueError(f"{path.name}: {len(ordered)} files of {offset} bytes do not fit a zip")
        output.write(central)
        output.write(_END.pack(b"PK\x05\x06", 0, 0, len(ordered), len(ordered), len(central), offset, 0))
