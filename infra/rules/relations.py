"""How resources hang together: which function consumes which queue, which queue holds whose dead messages."""

from collections.abc import Iterator
from typing import Any

from infra.rules import resource_types as kind
from infra.rules.graph import Graph, Node

Faults = Iterator[tuple[Node, str]]
"""What a rule yields: the resource at fault and one sentence."""


def consumers(graph: Graph) -> Iterator[tuple[Node, Node, Node]]:
    for mapping in graph.of(kind.MAPPING):
        queue = graph.target(mapping.inputs.get("eventSourceArn"), kind.QUEUE)
        function = graph.target(mapping.inputs.get("functionName"), kind.FUNCTION)
        if queue and function:
            yield mapping, queue, function


def redrives(graph: Graph) -> Iterator[tuple[Node, Node, dict[str, Any]]]:
    """Each queue with its dead-letter queue and the redrive policy, which is empty while it isn't known."""
    for policy in graph.of(kind.REDRIVE):
        document = policy.document("redrivePolicy") or {}
        queue = graph.target(policy.inputs.get("queueUrl"), kind.QUEUE)
        # A document that isn't known yet stands for the one resource it depends on.
        dlq = graph.target(document.get("deadLetterTargetArn", policy.inputs.get("redrivePolicy")), kind.QUEUE)
        if queue and dlq:
            yield queue, dlq, document


def dead_letter_queues(graph: Graph) -> list[Node]:
    found = [dlq for _, dlq, _ in redrives(graph)]
    for schedule in graph.of(kind.SCHEDULE):
        arn = schedule.nested("target").get("deadLetterConfig", {}).get("arn")
        found += [queue] if (queue := graph.target(arn, kind.QUEUE)) else []
    for function in graph.of(kind.FUNCTION):
        arn = function.nested("deadLetterConfig").get("targetArn", function.inputs.get("deadLetterConfig"))
        found += [queue] if (queue := graph.target(arn, kind.QUEUE)) else []
    return list({node.name: node for node in found}.values())
