"""One invocation: from records to the ids that failed."""

import logging
import random
from collections.abc import Callable, Iterable, Sequence
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import cached_property
from time import monotonic
from typing import TYPE_CHECKING, Generic, TypeVar

from pydantic import ValidationError

from api_services.messages import Message
from api_services.queues import QueueSpec
from api_services.request_context import bind_request_id, current_request_id
from functions.platform.outcomes import Outcomes
from functions.platform.records import (
    BODY_MAX_CHARACTERS,
    LOOKUP_FAULTS,
    TOO_LARGE,
    InvalidBodyError,
    LambdaContext,
    Record,
    RecordContext,
    invalid_body,
    receive_count_and_request_id,
    system_attribute,
)
from functions.platform.retry import margin_seconds, plan

if TYPE_CHECKING:
    from api_services.delivery.failures import FailureStore
    from functions.platform.delivery import Delivery

C = TypeVar("C")
M = TypeVar("M", bound=Message)

RecordHandler = Callable[[C, M, RecordContext], None]
GroupHandler = Callable[[C, Sequence[M], Sequence[RecordContext]], None]

Response = dict[str, list[dict[str, str]]]

logger = logging.getLogger(__name__)

_ENDS_THE_PROCESS = (KeyboardInterrupt, SystemExit, GeneratorExit)
"""Everything else that a record handler lets out, a MemoryError too, is that record's failure."""

AT_A_TIME = 10
"""Records validated before the first is handled; validating and handling one by one was 10 % slower."""


@dataclass(slots=True)
class ValidRecord(RecordContext, Generic[M]):
    """A record that may be handled: its context, which the handler is given, with its message.

    One object, since a second one for each record costs 0.04 of the bench's ratio at batch 10.
    """

    message: M = field(repr=False)
    raw: Record = field(repr=False)


Unit = list[ValidRecord[M]]
Lane = list[Unit[M]]


@dataclass(frozen=True)
class RunSetup(Generic[C, M]):
    """What all invocations of a consumer have in common."""

    spec: QueueSpec[M]
    record_handler: RecordHandler[C, M]
    group_handler: GroupHandler[C, M] | None
    failures: "Callable[[], FailureStore]"

    @cached_property
    def margin_ms(self) -> float:
        """No record is started when less time than this is left."""
        return margin_seconds(self.spec.function_timeout_seconds) * 1000

    @cached_property
    def in_lanes(self) -> bool:
        """Whether the whole batch is sorted before the first record is handled."""
        return self.spec.fifo or self.spec.record_concurrency > 1 or self.group_handler is not None


class BatchRun(Generic[C, M]):
    """The state of one invocation."""

    def __init__(
        self,
        setup: RunSetup[C, M],
        collaborators: C,
        context: LambdaContext | None,
        delivery: "Callable[[], Delivery]",
        may_start_ms: Callable[[], float] | None = None,
    ) -> None:
        self._setup = setup
        self._collaborators = collaborators
        self._delivery = delivery
        self._remaining_ms: Callable[[], float] = (
            full_time_ms(setup.spec.function_timeout_seconds)
            if context is None
            else context.get_remaining_time_in_millis
        )
        self._may_start_ms = may_start_ms or self._remaining_ms
        self._failed: set[str] = set()
        self.untouched: set[str] = set()
        """Failed ids whose record was not started."""
        self._made_outcomes: Outcomes | None = None

    @property
    def _outcomes(self) -> Outcomes:
        """Made when the first record is not simply handled."""
        made = self._made_outcomes
        if made is None:
            made = self._made_outcomes = Outcomes(self._setup.spec, self._delivery, self._setup.failures)
        return made

    def run(self, records: Sequence[Record]) -> Response:
        """Handle all; the answer lists failed ids in the order of the batch, each once."""
        before = current_request_id()
        try:
            if self._setup.in_lanes:
                self._run_lanes(self._lanes(self._valid(records)))
            else:
                for start in range(0, len(records), AT_A_TIME):
                    self._run_each(self._valid(records[start : start + AT_A_TIME]))
        finally:
            bind_request_id(before)
        if self._made_outcomes is not None:
            self._made_outcomes.close()
        if not self._failed:
            return {"batchItemFailures": []}
        ids = [record["messageId"] for record in records]
        return {"batchItemFailures": [{"itemIdentifier": each} for each in ids if each in self._failed]}

    def _valid(self, records: Sequence[Record]) -> list[ValidRecord[M]]:
        """The valid ones; the others are dropped."""
        valid: list[ValidRecord[M]] = []
        # The adapter's own method does nothing more, and takes a sixth longer.
        validate_json = self._setup.spec.adapter.validator.validate_json
        remaining_ms = self._remaining_ms

        def remaining_seconds() -> float:
            return remaining_ms() / 1000

        for record in records:
            message_id = record["messageId"]
            receive_count, request_id = receive_count_and_request_id(record)
            try:
                body = record["body"]
                if len(body) > BODY_MAX_CHARACTERS:
                    raise InvalidBodyError(TOO_LARGE)
                message = validate_json(body)
            except (ValidationError, InvalidBodyError, *LOOKUP_FAULTS) as error:
                # error-ends-here: a retry cannot succeed; the record is logged, counted, kept as a failure, and gone.
                context = RecordContext(message_id, receive_count, request_id, remaining_seconds)
                self._outcomes.dropped(context, invalid_body(record, error))
                continue
            valid.append(ValidRecord(message_id, receive_count, request_id, remaining_seconds, message, record))
        return valid

    def _lanes(self, records: Iterable[ValidRecord[M]]) -> list[Lane[M]]:
        """Lanes are independent of each other; within one, order holds and (on a FIFO queue) a failure ends it."""
        group_by = self._setup.spec.group_by if self._setup.group_handler is not None else None
        if self._setup.spec.fifo:
            return list(self._fifo_lanes(records, group_by).values())
        if group_by is None:
            return [[[record]] for record in records]
        units: dict[object, Unit[M]] = {}
        for record in records:
            key = getattr(record.message, group_by, None)
            if type(key) is not str and type(key) is not int:
                key = (record.message_id,)  # it groups with nothing
            unit = units.get(key)
            if unit is None:
                units[key] = [record]
            else:
                unit.append(record)
        return [[unit] for unit in units.values()]

    def _fifo_lanes(self, records: Iterable[ValidRecord[M]], group_by: str | None) -> dict[str | None, Lane[M]]:
        """By message group; neighbours with an equal key share a unit, since no other may come between them."""
        lanes: dict[str | None, Lane[M]] = {}
        for record in records:
            lane = lanes.setdefault(system_attribute(record.raw, "MessageGroupId"), [])
            key = getattr(record.message, group_by, None) if group_by else None
            if key is not None and lane and getattr(lane[-1][-1].message, group_by or "", None) == key:
                lane[-1].append(record)
            else:
                lane.append([record])
        return lanes

    def _run_lanes(self, lanes: Sequence[Lane[M]]) -> None:
        workers = min(self._setup.spec.record_concurrency, len(lanes))
        if workers <= 1:
            for lane in lanes:
                self._run_lane(lane)
            return
        from concurrent.futures import ThreadPoolExecutor

        self._made_outcomes = self._outcomes  # one for all threads
        with ThreadPoolExecutor(workers, thread_name_prefix="record") as pool:
            futures = [pool.submit(copy_context().run, self._run_lane, lane) for lane in lanes]
            try:
                for future in futures:
                    future.result()
            finally:
                pool.shutdown(cancel_futures=True)

    def _run_lane(self, lane: Lane[M]) -> None:
        handler = self._setup.group_handler
        units = iter(lane)
        for unit in units:
            done = handler is not None and len(unit) > 1 and self._run_group(handler, unit)
            if not done and not self._run_each(unit) and self._setup.spec.fifo:
                for later in units:
                    self._fail_unrun(later)

    def _run_group(self, handler: GroupHandler[C, M], unit: Unit[M]) -> bool:
        """Whether all were handled together; otherwise nothing was."""
        if self._may_start_ms() < self._setup.margin_ms:
            return False
        try:
            copy_context().run(self._call_group, handler, unit)
        except _ENDS_THE_PROCESS:
            raise
        except BaseException as error:  # noqa: BLE001  (every message's own outcome follows)
            # error-ends-here: each record is handled alone, and fails or not on its own.
            logger.warning(
                "consumer.group_failed",
                extra={"queue": self._setup.spec.name, "count": len(unit), "errorClass": type(error).__name__},
            )
            return False
        return True

    def _call_group(self, handler: GroupHandler[C, M], unit: Unit[M]) -> None:
        ids = {record.request_id for record in unit}
        bind_request_id(ids.pop() if len(ids) == 1 else None)
        handler(self._collaborators, [record.message for record in unit], list(unit))

    def _run_each(self, records: Iterable[ValidRecord[M]]) -> bool:
        """Handle each alone; on a FIFO queue the first failure ends it. Whether none failed."""
        handle, collaborators = self._setup.record_handler, self._collaborators
        may_start_ms, margin_ms = self._may_start_ms, self._setup.margin_ms
        none_failed = True
        rest = iter(records)
        for record in rest:
            if may_start_ms() < margin_ms:
                self._not_started(record)
            else:
                bind_request_id(record.request_id)
                try:
                    copy_context().run(handle, collaborators, record.message, record)
                    continue
                except _ENDS_THE_PROCESS:
                    raise
                except BaseException as error:  # noqa: BLE001  (a record's failure is its own)
                    # error-ends-here: the id is reported as failed, or the message is in the dead-letter queue.
                    if self._fail(record, error):
                        continue
            none_failed = False
            if self._setup.spec.fifo:
                self._fail_unrun(rest)
        return none_failed

    def _fail(self, record: ValidRecord[M], error: BaseException) -> bool:
        """Act on the plan; True where the message counts as handled."""
        timeout = self._setup.spec.function_timeout_seconds + self._setup.spec.batching_window_seconds
        action = plan(
            error,
            record.receive_count,
            in_flight_seconds=timeout - self._remaining_ms() / 1000,
            jitter=random.random,
        )
        handled = self._outcomes.failed(record.raw, record, error, action)
        if not handled:
            self._failed.add(record.message_id)
        return handled

    def _fail_unrun(self, records: Iterable[ValidRecord[M]]) -> None:
        """After a failure in their FIFO group."""
        for record in records:
            self._failed.add(record.message_id)
            self.untouched.add(record.message_id)

    def _not_started(self, record: ValidRecord[M]) -> None:
        self._outcomes.not_started()
        self._fail_unrun((record,))


def full_time_ms(timeout_seconds: float) -> Callable[[], float]:
    """Remaining milliseconds where nobody stops the handler: as if it began now with the function's timeout."""
    end = monotonic() + timeout_seconds
    return lambda: (end - monotonic()) * 1000
