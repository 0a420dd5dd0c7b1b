"""The rules as a policy pack see the engine's resources as the program's own rules see its graph."""

from dataclasses import replace
from typing import Any

import pytest
from pulumi_policy import PolicyResource, PolicyResourceOptions, StackValidationArgs
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE, unknown_checking_proxy

from infra import resource_types as kind
from infra.policies import graph_of, stack_policies
from infra.rules import RULES, check
from tests.infra.engine import Engine, Recorded

DOCUMENTS = {"redrivePolicy", "redriveAllowPolicy", "policy", "containerDefinitions"}


def as_policy_resources(engine: Engine, *, preview: bool) -> list[PolicyResource]:
    """What the engine would hand to a pack; at a preview, what depends on another resource is unknown."""
    made: dict[str, PolicyResource] = {}
    for item in engine.resources:
        options = PolicyResourceOptions(
            protect=item.protect,
            ignore_changes=[],
            delete_before_replace=None,
            aliases=[],
            custom_timeouts=None,  # pyright: ignore[reportArgumentType]
            additional_secret_outputs=[],
            parent=item.parent,
        )
        props: dict[str, Any] = dict(item.inputs)
        made[f"{item.type}::{item.name}"] = PolicyResource(
            item.type,
            props,
            f"urn:pulumi:dev::sophia::{item.type}::{item.name}",
            item.name,
            options,
            None,
            None,
            [],
            {},
        )
    for item in engine.resources:
        resource = made[f"{item.type}::{item.name}"]
        resource.parent = made.get(item.parent)
        if preview:
            _hide(item, resource, made)
    return list(made.values())


def _hide(item: Recorded, resource: PolicyResource, made: dict[str, PolicyResource]) -> None:
    targets = {"queueUrl": kind.QUEUE, "eventSourceArn": kind.QUEUE, "functionName": kind.FUNCTION, "topic": kind.TOPIC}
    props = dict(item.inputs)
    for key in DOCUMENTS & props.keys():
        props[key] = UNKNOWN_STRING_VALUE
    for key, target in targets.items():
        if key in props:
            name = str(props[key]).rsplit("/", 1)[-1].rsplit(":", 1)[-1]
            found = [one for one in made.values() if one.resource_type == target and one.props["name"] == name]
            resource.property_dependencies[key] = found
            props[key] = UNKNOWN_STRING_VALUE
    resource.props = unknown_checking_proxy(props)


def reported(resources: list[PolicyResource], name: str) -> list[tuple[str, str | None]]:
    (policy,) = [item for item in stack_policies() if item.name == name]
    found: list[tuple[str, str | None]] = []
    args = StackValidationArgs(resources, {}, {})
    policy.validate(args, lambda message, urn=None: found.append((message, urn)))
    return found


@pytest.mark.parametrize("preview", [True, False])
@pytest.mark.parametrize("name", RULES)
def test_a_right_stack_breaks_no_policy(dev: Engine, name: str, preview: bool) -> None:
    if preview and name in ("queue-has-dlq", "alarms-reach-someone", "keys-admit-writers"):
        pytest.skip("needs what only a deployment knows")
    assert reported(as_policy_resources(dev, preview=preview), name) == []


def test_a_broken_stack_is_reported_with_resource_and_numbers(dev: Engine) -> None:
    resources = as_policy_resources(dev, preview=True)
    for resource in resources:
        if resource.name == "ingest-queue":
            resource.props = unknown_checking_proxy({**_all(resource), "visibilityTimeoutSeconds": 30})
    ((message, urn),) = reported(resources, "visibility-covers-timeout")
    assert "ingest-queue: the visibility timeout of 30 s is below the function's timeout of 900 s" in message
    assert urn == f"urn:pulumi:dev::sophia::{kind.QUEUE}::ingest-queue"


def test_the_pack_sees_the_stage_and_the_protection(dev: Engine) -> None:
    graph = graph_of("dev", as_policy_resources(dev, preview=False))
    nodes = tuple(replace(node, protect=False) for node in graph.nodes)
    assert check(graph) == []
    assert {violation.rule for violation in check(replace(graph, nodes=nodes))} == {"queues-are-protected"}


def _all(resource: PolicyResource) -> dict[str, Any]:
    return {key: resource.props[key] for key in resource.props}
