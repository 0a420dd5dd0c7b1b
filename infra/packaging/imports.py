"""The static import graph of a handler: which first-party modules it can reach, and which third-party names.

Imports inside functions count, imports for type checkers do not. `importlib.import_module` counts where its argument is
a literal.
"""

import ast
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Final

from infra.packaging.errors import HandlerMissingError, PackagingError
from infra.packaging.sources import checked

FIRST_PARTY: Final = ("api_services", "functions")
"""What a function may ship."""

_IMPORTING_CALLS: Final = (b"import_module", b"__import__")

Children = Callable[[ast.AST], Iterator[ast.AST]]


@dataclass(frozen=True, slots=True)
class Import:
    """One imported name. `names` are what a `from` import takes; `optional` ones stand in a guard for `ImportError`."""

    module: str
    names: tuple[str, ...]
    line: int
    optional: bool


@dataclass(slots=True)
class Reached:
    """What a handler reaches: module name to file, and third-party top-level name to where it is imported first."""

    modules: dict[str, Path] = field(default_factory=dict[str, Path])
    named: set[str] = field(default_factory=set[str])
    third_party: dict[str, str] = field(default_factory=dict[str, str])
    services: dict[str, str] = field(default_factory=dict[str, str])


def reach(starts: list[str], root: Path) -> Reached:
    """Follow imports from the modules `starts`. `services` are AWS services named in `client("...")` calls.

    Raises `HandlerMissingError` where a first-party module is not there, `PackagingError` where the graph leaves
    `FIRST_PARTY` for another package of the repository.
    """
    reached = Reached()
    waiting = [(name, "") for name in starts]
    while waiting:
        name, wanted_by = waiting.pop()
        reached.named.add(name)
        for module in _with_parents(name):
            if module in reached.modules:
                continue
            path = module_file(module, root)
            if path is None and root.joinpath(*module.split(".")).is_dir():
                continue
            if path is None:
                raise HandlerMissingError(
                    f"{wanted_by or 'the handler'} imports {module}, which is not in the repository"
                )
            reached.modules[module] = path
            waiting.extend(_follow(module, path, root, reached))
    return reached


def _follow(module: str, path: Path, root: Path, reached: Reached) -> Iterator[tuple[str, str]]:
    imports, services = _scan_file(checked(path, root), module, path.name == "__init__.py")
    shown = str(path.relative_to(root))
    for service, line in services:
        reached.services.setdefault(service, f"{shown}:{line}")
    for found in imports:
        top = found.module.partition(".")[0]
        where = f"{shown}:{found.line}"
        if top in FIRST_PARTY:
            yield found.module, where
            for name in found.names:
                child = f"{found.module}.{name}"
                if module_file(child, root) is not None:
                    yield child, where
        elif top in sys.stdlib_module_names:
            continue
        elif (root / top / "__init__.py").is_file():
            raise PackagingError(f"{where} imports {found.module}; a function ships {' and '.join(FIRST_PARTY)} only")
        elif not found.optional:
            reached.third_party.setdefault(top, where)


def module_file(module: str, root: Path) -> Path | None:
    """The file of a first-party module or package."""
    base = root.joinpath(*module.split("."))
    for path in (base / "__init__.py", base.with_name(f"{base.name}.py")):
        if path.is_file() or path.is_symlink():
            return path
    return None


def _with_parents(module: str) -> list[str]:
    parts = module.split(".")
    return [".".join(parts[: index + 1]) for index in range(len(parts))]


def defined_names(path: Path) -> set[str]:
    """Names that a module binds at its top level."""
    names: set[str] = set()
    for node in ast.parse(path.read_bytes(), str(path)).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names.update(target.id for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names.update(alias.asname or alias.name for alias in node.names)
    return names


def _scan_file(path: Path, module: str, is_package: bool) -> tuple[tuple[Import, ...], tuple[tuple[str, int], ...]]:
    status = path.stat()
    return _scan(path, module, is_package, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=1024)
def _scan(
    path: Path, module: str, is_package: bool, _mtime_ns: int, _size: int
) -> tuple[tuple[Import, ...], tuple[tuple[str, int], ...]]:
    source = path.read_bytes()
    try:
        tree = ast.parse(source, path.name)
    except SyntaxError as exc:
        raise PackagingError(f"{module} is not valid Python: line {exc.lineno}, {exc.msg}") from exc
    package = module if is_package else module.rpartition(".")[0]
    # Most files call none of these, and then only statements need a look: a preview scans every file.
    children = ast.iter_child_nodes if any(name in source for name in _IMPORTING_CALLS) else _statements
    services = tuple(_services(tree)) if b"client(" in source else ()
    return tuple(_imports(tree, package, children, optional=False)), services


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    for field_name in ("body", "handlers", "orelse", "finalbody", "cases"):
        part = getattr(node, field_name, None)
        if isinstance(part, list):
            yield from part  # pyright: ignore[reportUnknownVariableType]  (these fields hold statements, or what has them)


def _imports(node: ast.AST, package: str, children: Children, *, optional: bool) -> Iterator[Import]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield Import(alias.name, (), node.lineno, optional)
    elif isinstance(node, ast.ImportFrom):
        yield Import(_absolute(node, package), tuple(alias.name for alias in node.names), node.lineno, optional)
    elif isinstance(node, ast.Call) and _called(node).encode() in _IMPORTING_CALLS:
        literal = _first_literal(node)
        if literal is not None and not literal.startswith("."):
            yield Import(literal, (), node.lineno, optional)
    elif isinstance(node, ast.Try) and any(_catches_import_error(handler) for handler in node.handlers):
        for child in node.body:
            yield from _imports(child, package, children, optional=True)
        for child in (*node.handlers, *node.orelse, *node.finalbody):
            yield from _imports(child, package, children, optional=optional)
        return
    elif isinstance(node, ast.If) and _is_type_checking(node.test):
        for child in node.orelse:
            yield from _imports(child, package, children, optional=optional)
        return
    for child in children(node):
        yield from _imports(child, package, children, optional=optional)


def _services(tree: ast.AST) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _called(node) in {"client", "create_client"}:
            literal = _first_literal(node)
            if literal is not None:
                yield literal, node.lineno


def _absolute(node: ast.ImportFrom, package: str) -> str:
    if node.level == 0:
        return node.module or ""
    parts = package.split(".")
    base = parts[: len(parts) - node.level + 1]
    return ".".join([*base, node.module] if node.module else base)


def _called(node: ast.Call) -> str:
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""


def _first_literal(node: ast.Call) -> str | None:
    first = node.args[0] if node.args else None
    return first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else None


def _catches_import_error(handler: ast.ExceptHandler) -> bool:
    caught = handler.type
    names = caught.elts if isinstance(caught, ast.Tuple) else [caught]
    return any(isinstance(name, ast.Name) and name.id in {"ImportError", "ModuleNotFoundError"} for name in names)


def _is_type_checking(test: ast.expr) -> bool:
    return (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING") or (
        isinstance(test, ast.Attribute) and test.attr == "TYPE_CHECKING"
    )
