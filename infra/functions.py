"""What every function of a stage is made of: its package, its access, and the stage's own settings."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pulumi

from api_services.function_spec import FunctionSpec, physical_name
from infra.components.lambda_function import NAME_MAX, LambdaFunctionArgs
from infra.components.queue_pair import QueuePair
from infra.config import StageConfig
from infra.foundation import Foundation
from infra.packaging import FunctionPackage, PackagingError, build_function, check_package
from infra.processes import declared_access

REPOSITORY: Final = Path(__file__).resolve().parents[1]
BUILD_FOLDER: Final = REPOSITORY / ".sophia" / "build"


def package(handler: str, config: StageConfig) -> FunctionPackage:
    """The zip of `handler`; nothing is done if it is current. A fault ends the program with its sentence."""
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


def function_args(
    spec: FunctionSpec, config: StageConfig, foundation: Foundation, pairs: Mapping[str, QueuePair]
) -> LambdaFunctionArgs:
    """The function that the registries declare as `spec`, as the stage runs it."""
    return LambdaFunctionArgs(
        physical_name=physical_name(config.stage, spec.name, limit=NAME_MAX),
        handler=spec.handler,
        package=package(spec.handler, config),
        access=declared_access(spec.name, config, foundation, pairs, spec.secrets, spec.settings),
        architecture=config.architecture,
        python_version=config.python_version,
        timeout_seconds=spec.function_timeout_seconds,
        memory_mb=spec.memory_mb,
        log_retention_days=config.log_retention_days,
        key_arn=foundation.key_arn,
        tracing=config.tracing,
    )
