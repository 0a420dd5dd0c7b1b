"""What a failed interview costs, and how long an interview is kept."""

from datetime import timedelta
from typing import Final

RETENTION: Final = timedelta(days=365)
"""From the end of an interview to `retentionExpiresAt`."""


def credits_for_failure(failure_code: str, required: int) -> int:  # noqa: ARG001  (what a policy may look at)
    """Credits due for an interview that failed with that code: none, whatever the code."""
    return 0
