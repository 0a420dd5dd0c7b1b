"""Applies the README's page "Adding a queue" to a checkout: its blocks of code are written where it says.

`python -m tests.support.add_queue FOLDER` does it by hand.
"""

import re
import sys
import textwrap
from pathlib import Path
from typing import Final

PAGE: Final = "## Adding a queue"
REGISTRY: Final = "api_services/queues.py"

_BLOCK: Final = re.compile(
    r"`((?:api_services|functions|tests)/[\w/]+\.py)`[^`]*(?:`[^`]+`[^`]*)*?```python\n(.*?)\n *```", re.S
)


def blocks(readme: str) -> dict[str, str]:
    """The page's code by the file it belongs to."""
    page = readme[readme.index(PAGE) :]
    page = page[: page.index("\n## ", 1)]
    return {path: textwrap.dedent(code).strip() + "\n" for path, code in _BLOCK.findall(page)}


def add_queue(root: Path) -> set[str]:
    """Write the page's files below `root`; the paths of what was added or changed."""
    written: set[str] = set()
    for path, code in blocks((root / "README.md").read_text()).items():
        target = root / path
        if path == REGISTRY:
            target.write_text(_registered(target.read_text(), code))
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(code)
            if not path.startswith("tests/"):
                (target.parent / "__init__.py").touch()
                written.add((target.parent / "__init__.py").relative_to(root).as_posix())
        written.add(path)
        if path.endswith("handler.py"):
            (target.parent / "requirements.txt").write_text("pymongo\n")
            written.add((target.parent / "requirements.txt").relative_to(root).as_posix())
    return written


def _registered(registry: str, code: str) -> str:
    """The registry with the entry of `code`, its import, and its name in `QUEUES`."""
    imports, entry = code.split("\n\n", 1)
    name = entry.split(" ", 1)[0]
    registry = registry.replace("from api_services.messages import", f"{imports}\nfrom api_services.messages import", 1)
    before, after = registry.split("QUEUES: tuple", 1)
    head, tail = after.split(")", 1)
    return f"{before}{entry}\nQUEUES: tuple{head}, {name}){tail}"


if __name__ == "__main__":
    print("\n".join(sorted(add_queue(Path(sys.argv[1])))))  # noqa: T201
