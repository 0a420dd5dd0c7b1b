"""How a command ends: a user's error is one sentence with its remedy and exit code 2, never a traceback."""

import sys
from collections.abc import Callable

from api_services.errors import AppError

USER_ERROR = 2
INTERRUPTED = 130


def exit_code_of(command: Callable[[], int]) -> int:
    """Run `command` and give its exit code; an `AppError` is written to stderr as `error (code): sentence`."""
    try:
        return command()
    except AppError as error:
        sys.stderr.write(f"error ({error.code}): {error.message}\n")
        return USER_ERROR
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return INTERRUPTED
