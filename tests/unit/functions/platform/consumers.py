"""A consumer under test with fakes for all that it touches."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from api_services.interviews.messages import InterviewCompleted, InterviewFailed
from api_services.queues import INTERVIEW_COMPLETED, QueueSpec
from functions.platform.records import RecordContext
from functions.platform.sqs_consumer import SqsConsumer, sqs_consumer
from tests.support.fakes import FakeDelivery, FakeFailureStore, sqs_record

Ended = InterviewCompleted | InterviewFailed
Handler = Callable[[Ended, RecordContext], None]


def completed(interview_id: str, organization_id: str = "org-1") -> InterviewCompleted:
    return InterviewCompleted(
        interview_id=interview_id, organization_id=organization_id, ended_at=datetime(2026, 1, 1, tzinfo=UTC)
    )


def nothing(message: Ended, context: RecordContext) -> None:
    """A record handler that is content."""


def raising(errors: dict[str, BaseException]) -> Handler:
    """A record handler that raises by interview id."""

    def handle(message: Ended, context: RecordContext) -> None:
        if message.interview_id in errors:
            raise errors[message.interview_id]

    return handle


@dataclass
class Rig:
    """`handled` are the interview ids that the record handler was given; `groups` those of each group call."""

    record_handler: Handler = nothing
    group_handler: Callable[[Sequence[Ended]], None] | None = None
    spec: QueueSpec[Ended] = INTERVIEW_COMPLETED
    changes: dict[str, Any] = field(default_factory=dict[str, Any])
    delivery: FakeDelivery = field(default_factory=FakeDelivery)
    failures: FakeFailureStore = field(default_factory=FakeFailureStore)
    handled: list[str] = field(default_factory=list[str])
    groups: list[list[str]] = field(default_factory=list[list[str]])
    contexts: list[RecordContext] = field(default_factory=list[RecordContext])
    connects: int = 0
    connect_error: Exception | None = None

    def __post_init__(self) -> None:
        self.consumer: SqsConsumer[str, Ended] = sqs_consumer(
            replace(self.spec, **self.changes),
            self._handle,
            connect=self._connect,
            group_handler=self._handle_group if self.group_handler is not None else None,
            delivery=lambda: self.delivery,
            failures=lambda: self.failures,
        )

    def call(self, *records: dict[str, Any], context: Any = None) -> list[str]:
        """Ids that failed, from an answer whose shape is checked."""
        answer = self.consumer({"Records": list(records)}, context)
        assert set(answer) == {"batchItemFailures"}
        assert all(set(item) == {"itemIdentifier"} for item in answer["batchItemFailures"])
        return [item["itemIdentifier"] for item in answer["batchItemFailures"]]

    def _connect(self) -> str:
        self.connects += 1
        if self.connect_error is not None:
            raise self.connect_error
        return "collaborators"

    def _handle(self, collaborators: str, message: Ended, context: RecordContext) -> None:
        assert collaborators == "collaborators"
        self.handled.append(message.interview_id)
        self.contexts.append(context)
        self.record_handler(message, context)

    def _handle_group(self, collaborators: str, messages: Sequence[Ended], contexts: Sequence[RecordContext]) -> None:
        assert collaborators == "collaborators"
        assert len(messages) == len(contexts)
        self.groups.append([message.interview_id for message in messages])
        assert self.group_handler is not None
        self.group_handler(messages)


def batch(*interview_ids: str) -> list[dict[str, Any]]:
    """Records `m-1`, `m-2`, ... of these interviews."""
    return [sqs_record(f"m-{number}", completed(each)) for number, each in enumerate(interview_ids, 1)]
