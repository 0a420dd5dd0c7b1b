"""What stops a package from being built; each is one sentence with its remedy and a stable code."""

from api_services.errors import ConfigurationError


class PackagingError(ConfigurationError):
    """A function cannot be packaged like this."""

    code = "package"


class HandlerMissingError(PackagingError):
    """The handler's folder, file or function is not there."""

    code = "package_handler_missing"


class RequirementError(PackagingError):
    """What a handler imports and what its requirements name differ."""

    code = "package_requirement"


class WheelMissingError(PackagingError):
    """A dependency has no wheel for the function's architecture and Python."""

    code = "package_wheel_missing"


class BinaryMismatchError(PackagingError):
    """A shared object in the package cannot be loaded where the function runs."""

    code = "package_binary"


class LinkRefusedError(PackagingError):
    """A symbolic link dangles, loops or leaves the repository."""

    code = "package_link"


class BudgetError(PackagingError):
    """A package is larger or slower than its budget."""

    code = "package_budget"


class RecordError(PackagingError):
    """The record beside a zip is missing, or disagrees with the zip or with the function."""

    code = "package_record"
