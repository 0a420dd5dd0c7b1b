"""The only way to write an SQS handler: a join of a queue's spec and a record handler.

A record that cannot be handled is never deleted unseen: its id is in `batchItemFailures`, or it is in the dead-letter
queue with its reason, or (an invalid body) it is logged, counted and in the failure store.
"""

from collections.abc import Callable, Collection
from inspect import isasyncgenfunction, iscoroutinefunction, isgeneratorfunction
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from api_services.messages import Message
from api_services.queues import QueueSpec
from functions.platform import clients
from functions.platform.bootstrap import bootstrap
from functions.platform.records import LambdaContext, records_of
from functions.platform.runner import BatchRun, GroupHandler, RecordHandler, Response, RunSetup

if TYPE_CHECKING:
    from api_services.delivery.failures import FailureStore
    from functions.platform.delivery import Delivery

C = TypeVar("C")
M = TypeVar("M", bound=Message)


class SqsConsumer(Generic[C, M]):
    """A Lambda handler. Of an invocation nothing stays but what `connect` returned."""

    def __init__(
        self,
        spec: QueueSpec[M],
        record_handler: RecordHandler[C, M],
        connect: Callable[[], C],
        group_handler: GroupHandler[C, M] | None,
        delivery: "Callable[[], Delivery]",
        failures: "Callable[[], FailureStore]",
    ) -> None:
        for handler in (record_handler, group_handler):
            _refuse_deferred(handler)
        self.setup = RunSetup(spec, record_handler, group_handler, failures)
        self.connect = connect
        self.delivery = delivery
        self._collaborators: tuple[C] | None = None

    @property
    def spec(self) -> QueueSpec[M]:
        """The queue's."""
        return self.setup.spec

    def __call__(self, event: Any, lambda_context: LambdaContext | None = None) -> Response:
        """Handle a batch and say which messages failed.

        Raises what `handle` raises.
        """
        return self.handle(event, lambda_context)[0]

    def handle(
        self,
        event: Any,
        lambda_context: LambdaContext | None,
        *,
        may_start_ms: Callable[[], float] | None = None,
        delivery: "Callable[[], Delivery] | None" = None,
    ) -> tuple[Response, Collection[str]]:
        """The answer, and which of its ids were left untouched.

        No record is started once `may_start_ms()`, by default the context's remaining time, is under the margin.
        `delivery` acts on failed messages in place of the consumer's own.
        Raises what `connect` raises, and `InvalidInputError` for an event that is none of SQS: in both cases the whole
        batch is delivered again. A process that is being ended (KeyboardInterrupt, SystemExit) is not held up either.
        """
        if self._collaborators is None:
            bootstrap()
        records = records_of(event)
        if not records:
            return {"batchItemFailures": []}, ()
        if self._collaborators is None:
            self._collaborators = (self.connect(),)
        run = BatchRun(self.setup, self._collaborators[0], lambda_context, delivery or self.delivery, may_start_ms)
        return run.run(records), run.untouched


def sqs_consumer(
    spec: QueueSpec[M],
    record_handler: RecordHandler[C, M],
    *,
    connect: Callable[[], C],
    group_handler: GroupHandler[C, M] | None = None,
    delivery: "Callable[[], Delivery] | None" = None,
    failures: "Callable[[], FailureStore] | None" = None,
) -> SqsConsumer[C, M]:
    """The handler of `spec`'s queue.

    `connect()` makes the collaborators, once per process. `record_handler(collaborators, message, context)` returns
    when the message may be deleted, and raises otherwise. `group_handler(collaborators, messages, contexts)` handles
    messages with an equal `spec.group_by` at once, all or nothing. `delivery` and `failures` are the consumer's own
    queues and the shared failure store unless given.
    """
    return SqsConsumer(
        spec,
        record_handler,
        connect,
        group_handler,
        delivery or (lambda: clients.delivery_for(cast(Any, spec))),
        failures or clients.failure_store,
    )


def _refuse_deferred(handler: Callable[..., Any] | None) -> None:
    """Raises `TypeError` for a handler whose call would only make a coroutine or a generator."""
    for function in (handler, getattr(handler, "__call__", None)):  # noqa: B004  (of an object: its method)
        if iscoroutinefunction(function) or isasyncgenfunction(function) or isgeneratorfunction(function):
            raise TypeError(
                f"{getattr(handler, '__qualname__', repr(handler))} is async or a generator: its call would return"
                " before the message is handled. Write it as a plain function."
            )
