"""What a process does once before its first record."""

import os
from functools import cache

from api_services.logs import configure_logging

IN_LAMBDA = "AWS_LAMBDA_FUNCTION_NAME"
"""Set by the Lambda runtime; elsewhere the process's own entry point configures its logs."""


@cache
def bootstrap() -> None:
    """JSON logs at `LOG_LEVEL`, once, where the process is a Lambda function."""
    if os.environ.get(IN_LAMBDA):
        configure_logging(os.environ.get("LOG_LEVEL") or "INFO")
