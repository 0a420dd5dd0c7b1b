"""Builds the packages of a stage's functions, for the architecture and Python the stage runs them on."""

from pathlib import Path
from typing import Final

import pulumi

from infra.config import StageConfig
from infra.packaging import FunctionPackage, PackagingError, build_function, check_package

REPOSITORY: Final = Path(__file__).resolve().parents[1]
BUILD_FOLDER: Final = REPOSITORY / ".sophia" / "build"


def package(handler: str, config: StageConfig) -> FunctionPackage:
    """The zip of `handler`; nothing is done where it stands already. A fault ends the program with its sentence."""
    try:
        built = build_function(
            handler,
            architecture=config.architecture,
            python_version=config.python_version,
            output_dir=BUILD_FOLDER / config.stage,
        )
        check_package(built.path, architecture=config.architecture, python_version=config.python_version)
        return built
    except PackagingError as exc:
        raise pulumi.RunError(exc.message) from exc
