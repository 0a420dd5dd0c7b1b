"""What must hold between the resources of a stage: pure functions over its declared graph.

Run at every preview by the program, in tests, and as a CrossGuard pack (`policy/`). Each rule yields one sentence per
fault, which names the resource and the numbers. What isn't known yet at a preview is not judged.
"""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from infra.rules import queues, security
from infra.rules.graph import Graph
from infra.rules.relations import Faults


class Violation(NamedTuple):
    """A rule's name, the resource at fault and one sentence."""

    rule: str
    resource: str
    sentence: str


Rule = Callable[[Graph], Faults]


RULES: Final[Mapping[str, Rule]] = {
    "visibility-covers-timeout": queues.visibility,
    "queue-has-dlq": queues.dead_letter_queue,
    "dlq-retention-above-source": queues.retention,
    "receives-have-a-floor": queues.receives,
    "partial-responses": queues.partial_responses,
    "concurrency-is-bounded": queues.concurrency,
    "batch-and-window": queues.batch,
    "queue-names-and-fifo-pairs": queues.queue_names,
    "function-matches-package": security.functions,
    "alarms-reach-someone": security.alarms,
    "keys-admit-writers": security.keys,
    "langfuse-needs-base-url": security.langfuse,
    "no-secret-in-environment": security.no_secrets,
    "queues-are-protected": security.queue_loss,
    "queues-are-closed": security.closed_queues,
    "policies-are-narrow": security.narrow_policies,
    "no-output-as-text": security.no_output_as_text,
}
"""By the name under which the CrossGuard pack knows them."""


def check(graph: Graph) -> list[Violation]:
    """Every fault in the graph, rule by rule."""
    return [
        Violation(name, node.name, f"{node.name}: {sentence} [{name}]")
        for name, rule in RULES.items()
        for node, sentence in rule(graph)
    ]
