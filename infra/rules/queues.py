"""Rules about queues and what consumes them. Each yields one sentence per fault; what isn't known isn't judged."""

from typing import Final

from api_services.function_spec import QUEUE_NAME_MAX
from infra.rules import resource_types as kind
from infra.rules.graph import Graph
from infra.rules.relations import Faults, consumers, dead_letter_queues, redrives

VISIBILITY_MAX: Final = 43_200
CONCURRENCY: Final = range(2, 1001)
"""Lambda API, ScalingConfig.MaximumConcurrency."""
RECEIVES_MIN: Final = 3
"""A throttled invocation uses up a receive; with fewer, messages are dead-lettered that no handler ever saw."""
BATCH_MAX: Final = 10_000
BATCH_MAX_WITHOUT_WINDOW: Final = 10
WINDOW_MAX: Final = 300


def visibility(graph: Graph) -> Faults:
    """A message must stay invisible for as long as its function may work on it."""
    for mapping, queue, function in consumers(graph):
        timeout, window = function.number("timeout", 3), mapping.number("maximumBatchingWindowInSeconds")
        visible_after = queue.number("visibilityTimeoutSeconds", 30)
        if visible_after < timeout + window:
            yield (
                queue,
                f"the visibility timeout of {visible_after} s is below the function's timeout of {timeout} s plus the "
                f"batching window of {window} s; make it at least {timeout + window} s",
            )
        if visible_after > VISIBILITY_MAX:
            yield queue, f"the visibility timeout of {visible_after} s is above SQS's limit of {VISIBILITY_MAX} s"


def dead_letter_queue(graph: Graph) -> Faults:
    """Every queue has a dead-letter queue, which admits it alone."""
    sources = {queue.name: dlq for queue, dlq, _ in redrives(graph)}
    dead_letters = {node.name for node in dead_letter_queues(graph)}
    for queue in graph.of(kind.QUEUE):
        if queue.name not in sources and queue.name not in dead_letters:
            yield queue, "has no dead-letter queue; declare a redrive policy for it"
    for queue, dlq, _ in redrives(graph):
        allowed = [
            graph.target(arn, kind.QUEUE)
            for policy in graph.of(kind.REDRIVE_ALLOW)
            if graph.target(policy.inputs.get("queueUrl"), kind.QUEUE) == dlq
            for arn in (policy.document("redriveAllowPolicy") or {}).get(
                "sourceQueueArns", policy.items("redriveAllowPolicy")
            )
        ]
        if allowed != [queue]:
            yield dlq, f"its redrive-allow policy must name {queue.name} and nothing else"


def retention(graph: Graph) -> Faults:
    """A dead letter keeps the time it was first sent, so its queue must keep messages for longer than the source."""
    for queue, dlq, _ in redrives(graph):
        kept, source = dlq.number("messageRetentionSeconds", 345_600), queue.number("messageRetentionSeconds", 345_600)
        if kept <= source:
            yield dlq, f"keeps messages for {kept} s, not longer than {queue.name}, which keeps them for {source} s"


def receives(graph: Graph) -> Faults:
    """Few receives and throttling together dead-letter messages that no handler ever saw."""
    for queue, _, document in redrives(graph):
        if not document:
            continue
        count = document.get("maxReceiveCount")
        if not isinstance(count, int) or isinstance(count, bool):
            yield queue, f"maxReceiveCount must be a whole number, got {count!r}"
        elif count < RECEIVES_MIN:
            yield queue, f"maxReceiveCount {count} is below {RECEIVES_MIN}; throttled receives would use it up"


def partial_responses(graph: Graph) -> Faults:
    """Without partial responses one bad record brings back its whole batch."""
    for mapping in graph.of(kind.MAPPING):
        types = mapping.items("functionResponseTypes")
        if types != ["ReportBatchItemFailures"]:
            yield mapping, f"functionResponseTypes must be exactly ['ReportBatchItemFailures'], got {types}"


def concurrency(graph: Graph) -> Faults:
    """Every mapping is bounded, and no function reserves less than its mappings may use."""
    for mapping, queue, function in consumers(graph):
        most = mapping.nested("scalingConfig").get("maximumConcurrency")
        reserved = function.inputs.get("reservedConcurrentExecutions")
        if not isinstance(most, int | float):
            beside = f" (reserved concurrency is {reserved})" if reserved is not None else ""
            yield mapping, f"queue {queue.name} has no maximum concurrency{beside}; set one from 2 to 1000"
            continue
        if int(most) not in CONCURRENCY:
            yield mapping, f"queue {queue.name} has a maximum concurrency of {most:g}; it must be from 2 to 1000"
        if isinstance(reserved, int | float) and 0 <= reserved < most:
            yield (
                mapping,
                f"queue {queue.name} has a maximum concurrency of {most:g}, above the reserved concurrency of "
                f"{reserved:g} of {function.name}; received messages would be throttled",
            )


def batch(graph: Graph) -> Faults:
    """Batch size and window: what Lambda refuses at deploy."""
    for mapping, queue, _ in consumers(graph):
        size, window = mapping.number("batchSize", 10), mapping.number("maximumBatchingWindowInSeconds")
        fifo = queue.inputs.get("fifoQueue") is True
        both = f"batch size {size} with a batching window of {window} s"
        if fifo and (size > BATCH_MAX_WITHOUT_WINDOW or window > 0):
            yield mapping, f"{both}: a FIFO queue takes at most {BATCH_MAX_WITHOUT_WINDOW} and no window"
        elif not 1 <= size <= BATCH_MAX:
            yield mapping, f"{both}: the size must be from 1 to {BATCH_MAX}"
        elif window not in range(WINDOW_MAX + 1):
            yield mapping, f"{both}: the window must be from 0 to {WINDOW_MAX} s"
        elif size > BATCH_MAX_WITHOUT_WINDOW and window == 0:
            yield mapping, f"{both}: above {BATCH_MAX_WITHOUT_WINDOW} a window of at least 1 s is needed"


def queue_names(graph: Graph) -> Faults:
    """FIFO queues come in pairs and are named so; names fit."""
    for queue in graph.of(kind.QUEUE):
        name, fifo = queue.text("name"), queue.inputs.get("fifoQueue") is True
        if len(name) > QUEUE_NAME_MAX:
            yield queue, f"the name '{name}' has {len(name)} characters; SQS takes {QUEUE_NAME_MAX}"
        if name and fifo != name.endswith(".fifo"):
            rule = "must end with .fifo" if fifo else "must not end with .fifo, for it is a standard queue"
            yield queue, f"the name '{name}' {rule}"
        if queue.inputs.get("contentBasedDeduplication") is True and not fifo:
            yield queue, "has content-based deduplication, which only a FIFO queue has"
    for queue, dlq, _ in redrives(graph):
        if (queue.inputs.get("fifoQueue") is True) != (dlq.inputs.get("fifoQueue") is True):
            yield dlq, f"must be FIFO if and only if {queue.name} is"
