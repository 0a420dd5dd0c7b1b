"""One invocation: from records to the ids that failed."""

import logging
import random
from collections.abc import Callable, Iterable, Sequence
from contextvars import copy_context
from time import monotonic
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from api_services.messages import Message
from api_services.request_context import bind_request_id
from functions.platform.outcomes import Outcomes
from functions.platform.records import (
    InvalidBodyError,
    LambdaContext,
    Record,
    RecordContext,
    parse_body,
    receive_count_of,
    request_id_of,
    system_attribute,
)
from functions.platform.retry import margin_seconds, plan

if TYPE_CHECKING:
    from functions.platform.sqs_consumer import SqsConsumer

C = TypeVar("C")
M = TypeVar("M", bound=Message)

Response = dict[str, list[dict[str, str]]]

logger = logging.getLogger(__name__)

_ENDS_THE_PROCESS = (KeyboardInterrupt, SystemExit, GeneratorExit)
"""Everything else that a record handler lets out, a MemoryError too, is that record's failure."""


class Work(NamedTuple):
    """A record that may be handled."""

    record: Record
    message: Any
    context: RecordContext


Unit = list[Work]
Lane = list[Unit]


class BatchRun(Generic[C, M]):
    """The state of one invocation."""

    def __init__(self, consumer: "SqsConsumer[C, M]", collaborators: C, context: LambdaContext | None) -> None:
        self._consumer = consumer
        self._spec = consumer.spec
        self._collaborators = collaborators
        self._handle = consumer.record_handler
        self._remaining_ms: Callable[[], float] = (
            full_time_ms(consumer.spec.function_timeout_seconds)
            if context is None
            else context.get_remaining_time_in_millis
        )
        self._margin_ms = margin_seconds(consumer.spec.function_timeout_seconds) * 1000
        self._failed: set[str] = set()
        self._outcomes = Outcomes(consumer.spec, consumer.delivery, consumer.failures)

    def run(self, records: Sequence[Record]) -> Response:
        """Handle all; the answer lists failed ids in the order of the batch, each once."""
        works = self._parse(records)
        spec = self._spec
        if spec.fifo or spec.record_concurrency > 1 or self._consumer.group_handler is not None:
            self._run_lanes(self._lanes(works))
        else:
            for work in works:
                self._run_one(work)
        self._outcomes.close()
        if not self._failed:
            return {"batchItemFailures": []}
        ordered = dict.fromkeys(record["messageId"] for record in records)
        return {"batchItemFailures": [{"itemIdentifier": each} for each in ordered if each in self._failed]}

    def _parse(self, records: Sequence[Record]) -> list[Work]:
        works: list[Work] = []
        adapter = self._spec.adapter
        seen: set[str] = set()
        remaining_ms = self._remaining_ms

        def remaining_seconds() -> float:
            return remaining_ms() / 1000

        for record in records:
            message_id: str = record["messageId"]
            if message_id in seen:
                continue
            seen.add(message_id)
            context = RecordContext(message_id, receive_count_of(record), request_id_of(record), remaining_seconds)
            try:
                message = parse_body(adapter, record)
            except InvalidBodyError as error:
                self._outcomes.dropped(context, error)
                continue
            works.append(Work(record, message, context))
        return works

    def _lanes(self, works: Iterable[Work]) -> list[Lane]:
        """Lanes are independent of each other; within one, order holds and (on a FIFO queue) a failure ends it."""
        group_by = self._spec.group_by if self._consumer.group_handler is not None else None
        lanes: dict[Any, Lane] = {}
        for index, work in enumerate(works):
            key = getattr(work.message, group_by, None) if group_by else None
            if self._spec.fifo:
                lane = lanes.setdefault(system_attribute(work.record, "MessageGroupId"), [])
                last = lane[-1][-1] if lane else None
                if key is not None and last is not None and getattr(last.message, group_by or "", None) == key:
                    lane[-1].append(work)
                else:
                    lane.append([work])
            elif isinstance(key, str | int):
                lanes.setdefault(("key", key), [[]])[0].append(work)
            else:
                lanes[index] = [[work]]
        return list(lanes.values())

    def _run_lanes(self, lanes: Sequence[Lane]) -> None:
        workers = min(self._spec.record_concurrency, len(lanes))
        if workers <= 1:
            for lane in lanes:
                self._run_lane(lane)
            return
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(workers, thread_name_prefix="record") as pool:
            for future in [pool.submit(copy_context().run, self._run_lane, lane) for lane in lanes]:
                future.result()

    def _run_lane(self, lane: Lane) -> None:
        for position, unit in enumerate(lane):
            handled = self._run_group(unit) if len(unit) > 1 else self._run_one(unit[0])
            if not handled and self._spec.fifo:
                for later in lane[position + 1 :]:
                    self._fail_unrun(later)
                return

    def _run_group(self, unit: Unit) -> bool:
        if not self._time_left():
            self._not_started(unit)
            return False
        try:
            copy_context().run(self._call_group, unit)
        except _ENDS_THE_PROCESS:
            raise
        except BaseException as error:  # noqa: BLE001  (every message's own outcome follows)
            # error-ends-here: each record is handled alone, and fails or not on its own.
            logger.warning(
                "consumer.group_failed",
                extra={"queue": self._spec.name, "count": len(unit), "errorClass": type(error).__name__},
            )
        else:
            return True
        for position, work in enumerate(unit):
            if not self._run_one(work) and self._spec.fifo:
                self._fail_unrun(unit[position + 1 :])
                return False
        return True

    def _call_group(self, unit: Unit) -> None:
        ids = {work.context.request_id for work in unit}
        bind_request_id(ids.pop() if len(ids) == 1 else None)
        handler = self._consumer.group_handler
        if handler is not None:
            handler(self._collaborators, [work.message for work in unit], [work.context for work in unit])

    def _run_one(self, work: Work) -> bool:
        if not self._time_left():
            self._not_started((work,))
            return False
        try:
            copy_context().run(self._call, work)
        except _ENDS_THE_PROCESS:
            raise
        except BaseException as error:  # noqa: BLE001  (a record's failure is its own)
            # error-ends-here: the id is reported as failed, or the message is in the dead-letter queue.
            return self._fail(work, error)
        return True

    def _call(self, work: Work) -> None:
        bind_request_id(work.context.request_id)
        self._handle(self._collaborators, work.message, work.context)

    def _time_left(self) -> bool:
        return self._remaining_ms() >= self._margin_ms

    def _fail(self, work: Work, error: BaseException) -> bool:
        """Act on the plan; True where the message counts as handled."""
        timeout = self._spec.function_timeout_seconds + self._spec.batching_window_seconds
        action = plan(
            error,
            work.context.receive_count,
            in_flight_seconds=timeout - self._remaining_ms() / 1000,
            jitter=random.random,
        )
        handled = self._outcomes.failed(work.record, work.context, error, action)
        if not handled:
            self._failed.add(work.context.message_id)
        return handled

    def _fail_unrun(self, works: Iterable[Work]) -> None:
        """After a failure in their FIFO group."""
        self._failed.update(work.context.message_id for work in works)

    def _not_started(self, works: Sequence[Work]) -> None:
        self._outcomes.not_started(len(works))
        self._fail_unrun(works)


def full_time_ms(timeout_seconds: float) -> Callable[[], float]:
    """Remaining milliseconds where nobody stops the handler: as if it began now with the function's timeout."""
    end = monotonic() + timeout_seconds
    return lambda: (end - monotonic()) * 1000
