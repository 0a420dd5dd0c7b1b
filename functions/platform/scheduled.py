"""The only way to write a scheduled function. A job that raises is tried again by the scheduler, then dead-lettered."""

import logging
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from api_services.request_context import new_request_id, request_context
from api_services.schedules import ScheduleSpec
from functions.platform.bootstrap import bootstrap
from functions.platform.records import LambdaContext
from functions.platform.runner import full_time_ms

C = TypeVar("C")

Job = Callable[[C, Callable[[], float]], None]

logger = logging.getLogger(__name__)


class ScheduledFunction(Generic[C]):
    """A Lambda handler that ignores its event."""

    def __init__(self, spec: ScheduleSpec, job: Job[C], connect: Callable[[], C]) -> None:
        self.spec = spec
        self.job = job
        self.connect = connect
        self._collaborators: tuple[C] | None = None

    def __call__(self, event: Any = None, lambda_context: LambdaContext | None = None) -> None:
        """Run the job under a request id of its own; raises what `connect` or the job raises."""
        del event
        bootstrap()
        remaining_ms = (
            lambda_context.get_remaining_time_in_millis
            if lambda_context is not None
            else full_time_ms(self.spec.function_timeout_seconds)
        )
        with request_context(new_request_id()):
            if self._collaborators is None:
                self._collaborators = (self.connect(),)
            self.job(self._collaborators[0], lambda: remaining_ms() / 1000)
            logger.info("schedule.done", extra={"schedule": self.spec.name})


def scheduled(spec: ScheduleSpec, job: Job[C], *, connect: Callable[[], C]) -> ScheduledFunction[C]:
    """The handler of a schedule: `job(collaborators, remaining_seconds)`; `connect()` runs once per process."""
    return ScheduledFunction(spec, job, connect)
