"""First-party files that may enter a package: a positive list of kinds, links followed and never out of the tree."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from infra.packaging.errors import LinkRefusedError

DATA_SUFFIXES: Final = frozenset({".json", ".txt", ".sql"})
"""Files beside a module that it may read at run time."""

_NEVER_FOLDERS: Final = frozenset({"__pycache__", "venv", "test", "tests", "node_modules"})
_NEVER_FILES: Final = frozenset({"requirements.txt"})


def checked(path: Path, root: Path) -> Path:
    """`path` with its links followed. Raises `LinkRefusedError` where one dangles, loops or leaves `root`."""
    try:
        real = path.resolve(strict=True)
    except (FileNotFoundError, RuntimeError, OSError) as exc:
        raise LinkRefusedError(f"{_shown(path, root)} links to nothing; remove the link or restore its target") from exc
    if not real.is_relative_to(root.resolve()):
        raise LinkRefusedError(f"{_shown(path, root)} links out of the repository; copy what it points at")
    return real


def folder_files(folder: Path, root: Path, *, python: bool = True) -> Iterator[Path]:
    """The files below `folder` that belong in a package, in a fixed order. Folders of tests, caches and dots don't."""
    yield from _walk(folder, root, python, (checked(folder, root),))


def data_files(package: Path, root: Path) -> Iterator[Path]:
    """Data files of one package: those beside its modules and those in folders that hold no module at all."""
    for path in _listed(package, root):
        if path.is_dir():
            inside = list(folder_files(path, root))
            if not any(item.suffix == ".py" for item in inside):
                yield from inside
        elif path.suffix in DATA_SUFFIXES:
            yield path


def _walk(folder: Path, root: Path, python: bool, parents: tuple[Path, ...]) -> Iterator[Path]:
    for path in _listed(folder, root):
        if path.is_dir():
            real = checked(path, root)
            if real in parents:
                raise LinkRefusedError(f"{_shown(path, root)} links to a folder that holds it; remove the link")
            yield from _walk(path, root, python, (*parents, real))
        elif path.suffix in DATA_SUFFIXES or (python and path.suffix == ".py"):
            yield path


def _listed(folder: Path, root: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        name = path.name
        if name.startswith(".") or name in _NEVER_FOLDERS or name in _NEVER_FILES or name.endswith(".egg-info"):
            continue
        checked(path, root)
        yield path


def _shown(path: Path, root: Path) -> str:
    return str(path.relative_to(root)) if path.is_relative_to(root) else path.name
