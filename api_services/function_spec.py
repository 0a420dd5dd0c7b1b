"""What every function of the stack has in common, whether a queue or a schedule calls it."""

import hashlib
import re
from dataclasses import dataclass
from typing import Final

from api_services.secrets import SecretSpec

QUEUE_NAME_MAX: Final = 80
"""Characters, `.fifo` included (SQS guide, quotas-queues)."""

_NAME: Final = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


@dataclass(frozen=True, kw_only=True)
class FunctionSpec:
    """A Lambda function: `settings` names the settings fields it reads beyond its secrets and queue URLs."""

    name: str
    purpose: str
    function_timeout_seconds: int
    memory_mb: int
    secrets: tuple[SecretSpec, ...]
    settings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"'{self.name}': a name is lower-case words joined by hyphens")

    @property
    def module(self) -> str:
        """Folder of the function below `functions/`: `interview_completed`."""
        return self.name.replace("-", "_")

    @property
    def handler(self) -> str:
        """Dotted path of the Lambda handler."""
        return f"functions.{self.module}.handler.handler"

    @property
    def dlq_output(self) -> str:
        """Stack output with the URL of the dead-letter queue: `interviewCompletedDlq`."""
        return f"{self.camel_name}Dlq"

    @property
    def camel_name(self) -> str:
        """The name as stack outputs begin: `interviewCompleted`."""
        first, *rest = self.name.split("-")
        return first + "".join(word.capitalize() for word in rest)

    def dlq_physical_name(self, stage: str) -> str:
        """Name of the dead-letter queue in AWS."""
        return physical_name(stage, f"{self.name}-dlq")


def physical_name(stage: str, name: str, *, fifo: bool = False, limit: int = QUEUE_NAME_MAX) -> str:
    """`sophia-<stage>-<name>`, shortened with a hash of the whole where it would pass `limit`; `.fifo` stays last."""
    suffix = ".fifo" if fifo else ""
    full = f"sophia-{stage}-{name}"
    room = limit - len(suffix)
    if len(full) > room:
        digest = hashlib.sha256(full.encode()).hexdigest()[:8]
        full = f"{full[: room - 9].rstrip('-')}-{digest}"
    return full + suffix
