"""What must hold between the resources of a stage: pure functions over its declared graph.

Run at every preview by the program, in tests, and as a CrossGuard pack (`policy/`). Each rule yields one sentence per
fault, which names the resource and the numbers. What isn't known yet at a preview is not judged.
"""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from infra import rules_queues, rules_security
from infra.graph import Graph
from infra.relations import Faults


class Violation(NamedTuple):
    """A rule's name, the resource at fault and one sentence."""

    rule: str
    resource: str
    sentence: str


Rule = Callable[[Graph], Faults]


RULES: Final[Mapping[str, Rule]] = {
    "visibility-covers-timeout": rules_queues.visibility,
    "queue-has-dlq": rules_queues.dead_letter_queue,
    "dlq-retention-above-source": rules_queues.retention,
    "receives-have-a-floor": rules_queues.receives,
    "partial-responses": rules_queues.partial_responses,
    "concurrency-is-bounded": rules_queues.concurrency,
    "batch-and-window": rules_queues.batch,
    "queue-names-and-fifo-pairs": rules_queues.queue_names,
    "function-matches-package": rules_security.functions,
    "alarms-reach-someone": rules_security.alarms,
    "keys-admit-writers": rules_security.keys,
    "langfuse-needs-base-url": rules_security.langfuse,
    "no-secret-in-environment": rules_security.no_secrets,
    "queues-are-protected": rules_security.queue_loss,
    "queues-are-closed": rules_security.closed_queues,
    "policies-are-narrow": rules_security.narrow_policies,
    "no-output-as-text": rules_security.no_output_as_text,
}
"""By the name under which the CrossGuard pack knows them."""


def check(graph: Graph) -> list[Violation]:
    """Every fault in the graph, rule by rule."""
    return [
        Violation(name, node.name, f"{node.name}: {sentence} [{name}]")
        for name, rule in RULES.items()
        for node, sentence in rule(graph)
    ]
