"""A small repository of one function, and ELF files made to measure, for tests of packaging."""

import struct
from pathlib import Path

HANDLER = "functions.jobs.handler.handler"

HANDLER_SOURCE = '''"""Handles jobs."""

from functions.platform import wrapper
from api_services.orders import service


def handler(event: object, context: object) -> str:
    from api_services.late import lazily

    return wrapper.run(service.place, lazily.NAME)
'''

FILES = {
    "requirements.txt": "pydantic==2.14.4\npymongo==4.20.1\nopenai==3.57.0\nlibsql==0.1.11\nsix==1.17.0\n",
    "functions/__init__.py": "",
    "functions/platform/__init__.py": "",
    "functions/platform/wrapper.py": "def run(place, name):\n    return place(name)\n",
    "functions/jobs/__init__.py": "",
    "functions/jobs/handler.py": HANDLER_SOURCE,
    "functions/jobs/requirements.txt": "",
    "functions/other/__init__.py": "",
    "functions/other/handler.py": "def handler(event, context):\n    return None\n",
    "functions/other/requirements.txt": "",
    "api_services/__init__.py": "",
    "api_services/orders/__init__.py": "",
    "api_services/orders/service.py": "from api_services.orders.prices import PRICE\n\n"
    "def place(name):\n    return PRICE, name\n",
    "api_services/orders/prices.py": "PRICE = 3\n",
    "api_services/orders/table.json": '{"a": 1}\n',
    "api_services/late/__init__.py": "",
    "api_services/late/lazily.py": "NAME = 'late'\n",
    "api_services/reports/__init__.py": "",
    "api_services/reports/service.py": "VALUE = 1\n",
    "infra/__init__.py": "",
}


def make_repository(root: Path) -> Path:
    """Write the repository to `root`."""
    for name, content in FILES.items():
        write(root / name, content)
    return root


def write(path: Path, content: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


def make_elf(machine: int, versions: tuple[str, ...] = ()) -> bytes:
    """A shared object of `machine` that asks libc for symbols of `versions`; one segment, mapped at 0x1000."""
    base, start = 0x1000, 64 + 2 * 56
    strings = b"\0libc.so.6\0" + b"".join(version.encode() + b"\0" for version in versions)
    offsets = [strings.index(version.encode() + b"\0") for version in versions]
    string_at = start
    need_at = string_at + len(strings)
    need = struct.pack("<HHIII", 1, len(versions), 1, 16, 0)
    for index, offset in enumerate(offsets):
        need += struct.pack("<IHHII", 0, 0, index + 2, offset, 16 if index + 1 < len(offsets) else 0)
    dynamic_at = need_at + len(need)
    tags = [(5, base + string_at)]
    tags += [(0x6FFFFFFE, base + need_at), (0x6FFFFFFF, 1)] if versions else []
    dynamic = b"".join(struct.pack("<qQ", tag, value) for tag, value in [*tags, (0, 0)])
    size = dynamic_at + len(dynamic)
    header = struct.pack(
        "<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01" + bytes(9), 3, machine, 1, 0, 64, 0, 0, 64, 56, 2, 0, 0, 0
    )
    load = struct.pack("<IIQQQQQQ", 1, 5, 0, base, base, size, size, 0x1000)
    dyn = struct.pack(
        "<IIQQQQQQ", 2, 6, dynamic_at, base + dynamic_at, base + dynamic_at, len(dynamic), len(dynamic), 8
    )
    return header + load + dyn + strings + need + dynamic
