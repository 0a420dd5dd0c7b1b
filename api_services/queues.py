"""The registry of queues: infrastructure, producers, consumers, command line and tests all read this.

Adding a queue is one entry here and one folder in `functions/`. What can be derived is a property, never a field.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Generic, TypeVar, Union

from pydantic import TypeAdapter

from api_services import secrets
from api_services.documents.messages import IngestDocument
from api_services.function_spec import FunctionSpec, physical_name
from api_services.interviews.messages import InterviewCompleted, InterviewFailed
from api_services.messages import Message
from api_services.reports.messages import GenerateReport

M = TypeVar("M", bound=Message)

API: Final = "api"
"""The producer that is not a function: the Fargate service."""

VISIBILITY_FACTOR: Final = 6
"""AWS's advice: six times the function's timeout, plus the batching window (Lambda guide, services-sqs-configure)."""


@dataclass(frozen=True, kw_only=True)
class QueueSpec(FunctionSpec, Generic[M]):
    """One queue with its dead-letter queue and its consumer.

    `messages` are the bodies the queue carries; with more than one, `type` tells them apart. `producers` are `API` or
    names of queues whose consumers send here. `group_by` names the message field whose equal values in a batch are
    handled together.
    """

    messages: tuple[type[M], ...]
    producers: tuple[str, ...]
    batch_size: int
    max_concurrency: int
    batching_window_seconds: int = 0
    max_receive_count: int = 3
    dlq_retention_days: int = 14
    retention_days: int = 4
    stated_visibility_timeout_seconds: int | None = None
    group_by: str | None = None
    record_concurrency: int = 1
    fifo: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.messages:
            raise ValueError(f"queue '{self.name}': declare at least one message")

    @property
    def visibility_timeout_seconds(self) -> int:
        """Stated, or six times the function's timeout plus the batching window."""
        if self.stated_visibility_timeout_seconds is not None:
            return self.stated_visibility_timeout_seconds
        return VISIBILITY_FACTOR * self.function_timeout_seconds + self.batching_window_seconds

    @property
    def url_env_key(self) -> str:
        """Environment variable with the queue's URL: `INTERVIEW_COMPLETED_QUEUE_URL`."""
        return f"{self.module.upper()}_QUEUE_URL"

    @property
    def dlq_url_env_key(self) -> str:
        """Environment variable with the dead-letter queue's URL: `INTERVIEW_COMPLETED_DLQ_URL`."""
        return f"{self.module.upper()}_DLQ_URL"

    @property
    def output(self) -> str:
        """Stack output with the queue's URL: `interviewCompletedQueue`."""
        return f"{self.camel_name}Queue"

    def physical_name(self, stage: str) -> str:
        """Name of the queue in AWS, at most 80 characters: `sophia-dev-interview-completed`."""
        return physical_name(stage, self.name, fifo=self.fifo)

    def dlq_physical_name(self, stage: str) -> str:
        """Name of the dead-letter queue in AWS."""
        return physical_name(stage, f"{self.name}-dlq", fifo=self.fifo)

    @cached_property
    def adapter(self) -> TypeAdapter[M]:
        """Validates a body; built once per process."""
        union: Any = Union[self.messages]  # noqa: UP007  (a tuple known at run time only)
        adapter: TypeAdapter[M] = TypeAdapter(union)
        adapter.rebuild()
        return adapter

    @property
    def sends_to(self) -> tuple["QueueSpec[Any]", ...]:
        """The queues this queue's consumer sends to."""
        return tuple(spec for spec in QUEUES if self.name in spec.producers)


INTERVIEW_COMPLETED = QueueSpec(
    name="interview-completed",
    purpose="settles the credits of interviews that ended",
    messages=(InterviewCompleted, InterviewFailed),
    producers=(API, "reconcile-interviews"),
    function_timeout_seconds=60,
    memory_mb=512,
    batch_size=10,
    max_concurrency=10,
    group_by="organization_id",
    secrets=(secrets.MONGO_URI,),
)

REPORT_GENERATE = QueueSpec(
    name="report-generate",
    purpose="writes the report of a settled interview with OpenAI",
    messages=(GenerateReport,),
    producers=("interview-completed", "reconcile-interviews"),
    function_timeout_seconds=300,
    memory_mb=512,
    batch_size=1,
    max_concurrency=10,
    secrets=(secrets.MONGO_URI, secrets.OPENAI_API_KEY, secrets.LANGFUSE_SECRET_KEY),
    settings=("openai_base_url", "report_model", "langfuse_base_url", "langfuse_public_key"),
)

INGEST = QueueSpec(
    name="ingest",
    purpose="chunks, embeds, enriches and indexes approved documents",
    messages=(IngestDocument,),
    producers=(API, "ingest", "reconcile-index"),
    function_timeout_seconds=900,
    stated_visibility_timeout_seconds=940,
    memory_mb=512,
    batch_size=1,
    max_concurrency=4,
    secrets=(
        secrets.MONGO_URI,
        secrets.OPENAI_API_KEY,
        secrets.LANGFUSE_SECRET_KEY,
        secrets.TURSO_AUTH_TOKEN,
    ),
    settings=(
        "openai_base_url",
        "embedding_model",
        "enrichment_model",
        "index_url",
        "langfuse_base_url",
        "langfuse_public_key",
    ),
)

INTERVIEW_FAILED = QueueSpec(
    name="interview-failed",
    purpose="settles interviews that failed, should they get a queue of their own",
    messages=(InterviewFailed,),
    producers=(API,),
    function_timeout_seconds=60,
    memory_mb=512,
    batch_size=10,
    max_concurrency=10,
    group_by="organization_id",
    secrets=(secrets.MONGO_URI,),
)

QUEUES: tuple[QueueSpec[Any], ...] = (INTERVIEW_COMPLETED, REPORT_GENERATE, INGEST)
"""Deployed by every stage."""

STANDALONE: tuple[QueueSpec[Any], ...] = (INTERVIEW_FAILED,)
"""Packaged and tested, deployed by none."""


def queue_named(name: str) -> QueueSpec[Any]:
    """The deployed queue of that name; `KeyError` with the known names otherwise."""
    for spec in QUEUES:
        if spec.name == name:
            return spec
    raise KeyError(f"no queue '{name}'; there are {', '.join(spec.name for spec in QUEUES)}")


def queues_sent_by(producer: str) -> Iterator[QueueSpec[Any]]:
    """The queues that `producer` (API, a queue's or a schedule's name) sends to."""
    return (spec for spec in QUEUES if producer in spec.producers)
