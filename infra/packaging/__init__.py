"""Lambda packages: equal inputs give equal bytes, for the function's own architecture and Python, without Docker."""

from infra.packaging.builder import FunctionPackage, build_function
from infra.packaging.errors import PackagingError
from infra.packaging.record import Record, check_package, read_record
from infra.packaging.targets import Architecture

__all__ = [
    "Architecture",
    "FunctionPackage",
    "PackagingError",
    "Record",
    "build_function",
    "check_package",
    "read_record",
]
