"""What becomes of the records that were not simply handled: queue actions, log lines, metrics, the failure store."""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from api_services import metrics
from api_services.delivery.dead_letters import DeadLetterReason
from functions.platform.records import InvalidBodyError, Record, RecordContext
from functions.platform.retry import Action, DeadLetter, Defer, code_of

if TYPE_CHECKING:
    from api_services.delivery.failures import Failure, FailureStore, Outcome
    from api_services.queues import QueueSpec
    from functions.platform.delivery import Delivery

logger = logging.getLogger(__name__)

MESSAGE_MAX = 300
"""Characters of an error's text that a log line repeats."""


class Outcomes:
    """Collects over one invocation; `close` writes metrics and failures once, and never raises."""

    def __init__(
        self,
        spec: "QueueSpec[Any]",
        delivery: "Callable[[], Delivery]",
        failures: "Callable[[], FailureStore]",
    ) -> None:
        self._spec = spec
        self._delivery = delivery
        self._failure_store = failures
        self._failures: list[Failure] = []
        self._not_started: list[int] = []

    def dropped(self, context: RecordContext, error: InvalidBodyError) -> None:
        """An invalid body: logged without it, counted, kept, and gone."""
        logger.error(
            "consumer.record_dropped", extra={**self._ids(context), "code": error.code, "faults": list(error.faults)}
        )
        self._keep("dropped", context, error, error.code)

    def failed(self, record: Record, context: RecordContext, error: BaseException, action: Action) -> bool:
        """Do what was planned; True where the message is in the dead-letter queue and so counts as handled."""
        outcome: Outcome = "failed"
        if isinstance(action, DeadLetter):
            if self._dead_letter(record, context, error):
                outcome = "dead_lettered"
        elif isinstance(action, Defer) and self._defer(record, context, error, action.seconds):
            outcome = "deferred"
        if outcome == "failed":
            logger.error("consumer.record_failed", extra={**self._ids(context), **_description(error)})
        self._keep(outcome, context, error, code_of(error))
        return outcome == "dead_lettered"

    def not_started(self) -> None:
        """A record left for the next delivery since time ran out."""
        self._not_started.append(1)

    def close(self) -> None:
        """Write what was collected."""
        if self._not_started:
            count = sum(self._not_started)
            logger.warning("consumer.out_of_time", extra={"queue": self._spec.name, "count": count})
            metrics.emit(metrics.RECORDS_NOT_STARTED, count, queue=self._spec.name)
        if not self._failures:
            return
        for outcome, name in _METRICS.items():
            count = sum(failure.outcome == outcome for failure in self._failures)
            if count:
                metrics.emit(name, count, queue=self._spec.name)
        try:
            self._failure_store().record(self._failures)
        except Exception as exc:  # noqa: BLE001
            # error-ends-here: the store is best effort; messages keep the outcome they have.
            logger.warning("consumer.failures_not_kept", extra={"queue": self._spec.name, **_description(exc)})

    def _dead_letter(self, record: Record, context: RecordContext, error: BaseException) -> bool:
        reason = DeadLetterReason(
            error_class=type(error).__name__,
            code=code_of(error),
            queue=self._spec.name,
            message_id=context.message_id,
            receive_count=context.receive_count,
        )
        try:
            self._delivery().dead_letter(record, reason)
        except Exception as exc:
            # error-ends-here: the caller reports the id as failed, so the message stays on its queue.
            logger.exception("consumer.dead_letter_not_sent", extra={**self._ids(context), **_description(exc)})
            return False
        logger.error("consumer.record_dead_lettered", extra={**self._ids(context), **_description(error)})
        return True

    def _defer(self, record: Record, context: RecordContext, error: BaseException, seconds: int) -> bool:
        try:
            self._delivery().set_visibility(record, seconds)
        except Exception as exc:  # noqa: BLE001
            # error-ends-here: the caller reports the id as failed, so the message returns at its normal time.
            logger.warning("consumer.visibility_not_set", extra={**self._ids(context), **_description(exc)})
            return False
        logger.warning(
            "consumer.record_deferred", extra={**self._ids(context), "delaySeconds": seconds, **_description(error)}
        )
        return True

    def _keep(self, outcome: "Outcome", context: RecordContext, error: BaseException, code: str) -> None:
        from api_services.delivery.failures import describe

        self._failures.append(
            describe(
                error,
                message_id=context.message_id,
                queue=self._spec.name,
                request_id=context.request_id,
                code=code,
                outcome=outcome,
                receive_count=context.receive_count,
            )
        )

    def _ids(self, context: RecordContext) -> dict[str, Any]:
        return {
            "queue": self._spec.name,
            "messageId": context.message_id,
            "receiveCount": context.receive_count,
            "requestId": context.request_id,
        }


_METRICS: "dict[Outcome, str]" = {
    "dropped": metrics.RECORDS_DROPPED,
    "dead_lettered": metrics.RECORDS_DEAD_LETTERED,
    "deferred": metrics.RECORDS_DEFERRED,
    "failed": metrics.RECORDS_FAILED,
}


def _description(error: BaseException) -> dict[str, Any]:
    """Class, code, place and bounded text; a pydantic error's text repeats its input and is left out."""
    from pydantic import ValidationError

    from api_services.delivery.failures import frames_of

    description = {"errorClass": type(error).__name__, "code": code_of(error), "frames": frames_of(error)}
    if not isinstance(error, ValidationError):
        description["reason"] = error_text(error)[:MESSAGE_MAX]
    return description


def error_text(error: BaseException) -> str:
    """The error's text; never raises, though an error's own `__str__` may."""
    try:
        return str(error)
    except Exception as exc:  # noqa: BLE001
        # error-ends-here: the text is only for a log line, and the record's outcome stands without it.
        return f"<no text: __str__ raised {type(exc).__name__}>"
