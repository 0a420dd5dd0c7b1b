"""The rules as a policy pack see the engine's resources as the program's own rules see its graph."""

import json
from dataclasses import replace
from typing import Any, cast

import pytest
from pulumi_policy import PolicyCustomTimeouts, PolicyResource, PolicyResourceOptions, StackValidationArgs
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE, unknown_checking_proxy

from infra.rules import RULES, check
from infra.rules import resource_types as kind
from infra.rules.graph import UNKNOWN, Ref
from infra.rules.policies import graph_of, stack_policies
from tests.infra.engine import Engine, Recorded

DOCUMENTS = {"redrivePolicy", "redriveAllowPolicy", "policy", "containerDefinitions", "assumeRolePolicy"}


def as_policy_resources(engine: Engine, *, preview: bool) -> list[PolicyResource]:
    """What the engine hands to a pack; at the preview of a new stack, all that depends on a resource is unknown."""
    made: dict[str, PolicyResource] = {}
    for item in engine.resources:
        urn = f"urn:pulumi:dev::sophia::{item.type}::{item.name}"
        made[urn] = PolicyResource(item.type, item.inputs, urn, item.name, _options(item), None, None, [], {})
    for node in engine.graph.nodes:
        resource = made[f"urn:pulumi:dev::sophia::{node.type}::{node.name}"]
        if node.parent:
            resource.parent = made[f"urn:pulumi:dev::sophia::{node.parent.type}::{node.parent.name}"]
        if preview:
            props: dict[str, Any] = {}
            for key, value in node.inputs.items():
                refs: list[Ref] = []
                props[key] = _hidden(value, refs)
                if key in DOCUMENTS:
                    props[key] = UNKNOWN_STRING_VALUE if refs or "UNKNOWN" in str(value) else json.dumps(value)
                urns = {f"urn:pulumi:dev::sophia::{ref.type}::{ref.name}" for ref in refs}
                resource.property_dependencies[key] = [made[urn] for urn in sorted(urns)]
            resource.props = unknown_checking_proxy(props)
    return list(made.values())


def _hidden(value: Any, refs: list[Ref]) -> Any:
    if isinstance(value, Ref):
        refs.append(value)
        return UNKNOWN_STRING_VALUE
    if value is UNKNOWN:
        return UNKNOWN_STRING_VALUE
    if isinstance(value, dict):
        return {key: _hidden(item, refs) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_hidden(item, refs) for item in cast("list[Any]", value)]
    return value


def _options(item: Recorded) -> PolicyResourceOptions:
    return PolicyResourceOptions(
        protect=item.protect,
        ignore_changes=[],
        delete_before_replace=None,
        aliases=[],
        custom_timeouts=PolicyCustomTimeouts(0, 0, 0),
        additional_secret_outputs=[],
        parent=item.parent,
    )


def reported(resources: list[PolicyResource], name: str) -> list[tuple[str, str | None]]:
    (policy,) = [item for item in stack_policies() if item.name == name]
    found: list[tuple[str, str | None]] = []
    args = StackValidationArgs(resources, {}, {})
    policy.validate(args, lambda message, urn=None: found.append((message, urn)))
    return found


@pytest.mark.parametrize("preview", [True, False])
@pytest.mark.parametrize("name", RULES)
def test_a_right_stack_breaks_no_policy(dev: Engine, name: str, preview: bool) -> None:
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
