"""The registry of scheduled functions. What they send is declared by the queues: see `QueueSpec.producers`."""

from dataclasses import dataclass

from api_services import secrets
from api_services.queues import physical_name
from api_services.secrets import SecretSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleSpec:
    """A function that EventBridge Scheduler calls at a fixed rate, with retries and a dead-letter queue of its own."""

    name: str
    purpose: str
    rate_minutes: int
    function_timeout_seconds: int
    memory_mb: int
    secrets: tuple[SecretSpec, ...]
    settings: tuple[str, ...] = ()
    max_retries: int = 2

    @property
    def module(self) -> str:
        """Folder of the function below `functions/`."""
        return self.name.replace("-", "_")

    @property
    def handler(self) -> str:
        """Dotted path of the Lambda handler."""
        return f"functions.{self.module}.handler.handler"

    @property
    def dlq_output(self) -> str:
        """Stack output with the URL of the queue of events that failed every retry: `reconcileIndexDlq`."""
        first, *rest = self.name.split("-")
        return first + "".join(word.capitalize() for word in rest) + "Dlq"

    def dlq_physical_name(self, stage: str) -> str:
        """Name in AWS of the queue of events that failed every retry."""
        return physical_name(stage, f"{self.name}-dlq")


RECONCILE_INTERVIEWS = ScheduleSpec(
    name="reconcile-interviews",
    purpose="enqueues interviews that ended but were not settled, and reports that nobody writes",
    rate_minutes=10,
    function_timeout_seconds=120,
    memory_mb=512,
    secrets=(secrets.MONGO_URI,),
)

RECONCILE_INDEX = ScheduleSpec(
    name="reconcile-index",
    purpose="compares the index with the approved documents and enqueues the difference",
    rate_minutes=60,
    function_timeout_seconds=300,
    memory_mb=512,
    secrets=(secrets.MONGO_URI, secrets.TURSO_AUTH_TOKEN),
    settings=("index_url", "embedding_model"),
)

SCHEDULES: tuple[ScheduleSpec, ...] = (RECONCILE_INTERVIEWS, RECONCILE_INDEX)
