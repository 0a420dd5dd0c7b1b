"""The registry of scheduled functions. What they send is declared by the queues: see `QueueSpec.producers`."""

from dataclasses import dataclass

from api_services import secrets
from api_services.function_spec import FunctionSpec


@dataclass(frozen=True, kw_only=True)
class ScheduleSpec(FunctionSpec):
    """A function that EventBridge Scheduler calls at a fixed rate, with retries and a dead-letter queue of its own.

    The dead-letter queue keeps the events that failed every retry.
    """

    rate_minutes: int
    max_retries: int = 2


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
