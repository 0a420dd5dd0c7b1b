"""One invocation: from records to the ids that failed."""

import logging
import random
from collections.abc import Callable, Iterable, Sequence
from contextvars import copy_context
from time import monotonic
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pydantic import ValidationError

from api_services.messages import Message
from api_services.request_context import REQUEST_ID_ATTRIBUTE, bind_request_id, current_request_id
from functions.platform.outcomes import Outcomes
from functions.platform.records import (
    BODY_MAX_CHARACTERS,
    LOOKUP_FAULTS,
    REQUEST_ID_MAX,
    TOO_LARGE,
    USUAL_COUNTS,
    InvalidBodyError,
    LambdaContext,
    Record,
    RecordContext,
    invalid_body,
    receive_count_of,
    request_id_of,
    system_attribute,
)
from functions.platform.retry import plan

if TYPE_CHECKING:
    from functions.platform.sqs_consumer import GroupHandler, SqsConsumer

C = TypeVar("C")
M = TypeVar("M", bound=Message)

Response = dict[str, list[dict[str, str]]]

logger = logging.getLogger(__name__)

_ENDS_THE_PROCESS = (KeyboardInterrupt, SystemExit, GeneratorExit)
"""Everything else that a record handler lets out, a MemoryError too, is that record's failure."""


Work = tuple[Record, Any, RecordContext]
"""A record that may be handled, with its message."""

AT_A_TIME = 10
"""Records validated in a row before they are handled: taking turns with every record costs a tenth more."""

Unit = list[Work]
Lane = list[Unit]


class BatchRun(Generic[C, M]):
    """The state of one invocation."""

    def __init__(
        self,
        consumer: "SqsConsumer[C, M]",
        collaborators: C,
        context: LambdaContext | None,
        may_start_ms: Callable[[], float] | None = None,
    ) -> None:
        self._consumer = consumer
        self._collaborators = collaborators
        self._remaining_ms: Callable[[], float] = (
            full_time_ms(consumer.spec.function_timeout_seconds)
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
            consumer = self._consumer
            made = self._made_outcomes = Outcomes(consumer.spec, consumer.delivery, consumer.failures)
        return made

    def run(self, records: Sequence[Record]) -> Response:
        """Handle all; the answer lists failed ids in the order of the batch, each once."""
        before = current_request_id()
        try:
            if self._consumer.in_lanes:
                self._run_lanes(self._lanes(self._works(records)))
            else:
                for start in range(0, len(records), AT_A_TIME):
                    self._run_each(self._works(records[start : start + AT_A_TIME]))
        finally:
            bind_request_id(before)
        if self._made_outcomes is not None:
            self._made_outcomes.close()
        if not self._failed:
            return {"batchItemFailures": []}
        ids = [record["messageId"] for record in records]
        return {"batchItemFailures": [{"itemIdentifier": each} for each in ids if each in self._failed]}

    def _works(self, records: Sequence[Record]) -> list[Work]:
        """The valid ones; the others are dropped. A loop without calls of ours, since every message passes here."""
        works: list[Work] = []
        # The adapter's own method does nothing more, and takes a sixth longer.
        validate_json = self._consumer.spec.adapter.validator.validate_json
        remaining_ms = self._remaining_ms

        def remaining_seconds() -> float:
            return remaining_ms() / 1000

        for record in records:
            try:
                receive_count = USUAL_COUNTS[record["attributes"]["ApproximateReceiveCount"]]
                request_id = record["messageAttributes"][REQUEST_ID_ATTRIBUTE]["stringValue"]
                if type(request_id) is not str or not request_id or len(request_id) > REQUEST_ID_MAX:
                    request_id = None
            except LOOKUP_FAULTS:
                # error-ends-here: attributes of another shape are read one by one.
                receive_count, request_id = receive_count_of(record), request_id_of(record)
            context = RecordContext(record["messageId"], receive_count, request_id, remaining_seconds)
            try:
                body = record["body"]
                if len(body) > BODY_MAX_CHARACTERS:
                    raise InvalidBodyError(TOO_LARGE)
                message = validate_json(body)
            except (ValidationError, InvalidBodyError, *LOOKUP_FAULTS) as error:
                # error-ends-here: a retry cannot succeed; the record is logged, counted, kept as a failure, and gone.
                self._outcomes.dropped(context, invalid_body(record, error))
                continue
            works.append((record, message, context))
        return works

    def _lanes(self, works: Iterable[Work]) -> list[Lane]:
        """Lanes are independent of each other; within one, order holds and (on a FIFO queue) a failure ends it."""
        group_by = self._consumer.spec.group_by if self._consumer.group_handler is not None else None
        if self._consumer.spec.fifo:
            return list(self._fifo_lanes(works, group_by).values())
        if group_by is None:
            return [[[work]] for work in works]
        units: dict[object, Unit] = {}
        for work in works:
            key = getattr(work[1], group_by, None)
            if type(key) is not str and type(key) is not int:
                key = (work[2].message_id,)  # it groups with nothing
            unit = units.get(key)
            if unit is None:
                units[key] = [work]
            else:
                unit.append(work)
        return [[unit] for unit in units.values()]

    def _fifo_lanes(self, works: Iterable[Work], group_by: str | None) -> dict[str | None, Lane]:
        """By message group; neighbours with an equal key share a unit, since no other may come between them."""
        lanes: dict[str | None, Lane] = {}
        for work in works:
            lane = lanes.setdefault(system_attribute(work[0], "MessageGroupId"), [])
            key = getattr(work[1], group_by, None) if group_by else None
            if key is not None and lane and getattr(lane[-1][-1][1], group_by or "", None) == key:
                lane[-1].append(work)
            else:
                lane.append([work])
        return lanes

    def _run_lanes(self, lanes: Sequence[Lane]) -> None:
        workers = min(self._consumer.spec.record_concurrency, len(lanes))
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

    def _run_lane(self, lane: Lane) -> None:
        handler = self._consumer.group_handler
        units = iter(lane)
        for unit in units:
            done = handler is not None and len(unit) > 1 and self._run_group(handler, unit)
            if not done and not self._run_each(unit) and self._consumer.spec.fifo:
                for later in units:
                    self._fail_unrun(later)

    def _run_group(self, handler: "GroupHandler[C, M]", unit: Unit) -> bool:
        """Whether all were handled together; otherwise nothing was."""
        if self._may_start_ms() < self._consumer.margin_ms:
            return False
        try:
            copy_context().run(self._call_group, handler, unit)
        except _ENDS_THE_PROCESS:
            raise
        except BaseException as error:  # noqa: BLE001  (every message's own outcome follows)
            # error-ends-here: each record is handled alone, and fails or not on its own.
            logger.warning(
                "consumer.group_failed",
                extra={"queue": self._consumer.spec.name, "count": len(unit), "errorClass": type(error).__name__},
            )
            return False
        return True

    def _call_group(self, handler: "GroupHandler[C, M]", unit: Unit) -> None:
        ids = {context.request_id for _, _, context in unit}
        bind_request_id(ids.pop() if len(ids) == 1 else None)
        handler(self._collaborators, [message for _, message, _ in unit], [context for _, _, context in unit])

    def _run_each(self, works: Iterable[Work]) -> bool:
        """Handle each alone; on a FIFO queue the first failure ends it. Whether none failed."""
        handle, collaborators = self._consumer.record_handler, self._collaborators
        may_start_ms, margin_ms = self._may_start_ms, self._consumer.margin_ms
        none_failed = True
        rest = iter(works)
        for work in rest:
            if may_start_ms() < margin_ms:
                self._not_started(work)
            else:
                bind_request_id(work[2].request_id)
                try:
                    copy_context().run(handle, collaborators, work[1], work[2])
                    continue
                except _ENDS_THE_PROCESS:
                    raise
                except BaseException as error:  # noqa: BLE001  (a record's failure is its own)
                    # error-ends-here: the id is reported as failed, or the message is in the dead-letter queue.
                    if self._fail(work, error):
                        continue
            none_failed = False
            if self._consumer.spec.fifo:
                self._fail_unrun(rest)
        return none_failed

    def _fail(self, work: Work, error: BaseException) -> bool:
        """Act on the plan; True where the message counts as handled."""
        timeout = self._consumer.spec.function_timeout_seconds + self._consumer.spec.batching_window_seconds
        action = plan(
            error,
            work[2].receive_count,
            in_flight_seconds=timeout - self._remaining_ms() / 1000,
            jitter=random.random,
        )
        handled = self._outcomes.failed(work[0], work[2], error, action)
        if not handled:
            self._failed.add(work[2].message_id)
        return handled

    def _fail_unrun(self, works: Iterable[Work]) -> None:
        """After a failure in their FIFO group."""
        for _, _, context in works:
            self._failed.add(context.message_id)
            self.untouched.add(context.message_id)

    def _not_started(self, work: Work) -> None:
        self._outcomes.not_started()
        self._fail_unrun((work,))


def full_time_ms(timeout_seconds: float) -> Callable[[], float]:
    """Remaining milliseconds where nobody stops the handler: as if it began now with the function's timeout."""
    end = monotonic() + timeout_seconds
    return lambda: (end - monotonic()) * 1000
