"""The rules as stack policies of CrossGuard, for `policy/`."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

from pulumi_policy import PolicyResource, ReportViolation, StackValidationArgs, StackValidationPolicy
from pulumi_policy.proxy import UnknownValueError

from infra.rules import RULES, Rule
from infra.rules.graph import UNKNOWN, Graph, Node, Ref


def stack_policies() -> list[StackValidationPolicy]:
    """One policy per rule, by its name."""
    return [
        StackValidationPolicy(name=name, description=rule.__doc__ or name, validate=_validator(rule))
        for name, rule in RULES.items()
    ]


def graph_of(stage: str, resources: Iterable[PolicyResource]) -> Graph:
    """The graph as the engine sees it. An input that isn't known yet stands for the resources it depends on."""
    found = list(resources)
    by_urn = {resource.urn: Ref(resource.resource_type, resource.name) for resource in found}
    return Graph(stage=stage, nodes=tuple(_node(resource, by_urn) for resource in found))


def _validator(rule: Rule) -> Callable[[StackValidationArgs, ReportViolation], None]:
    def validate(args: StackValidationArgs, report: ReportViolation) -> None:
        urns = {(resource.resource_type, resource.name): resource.urn for resource in args.resources}
        for node, sentence in rule(graph_of(_stage(args), args.resources)):
            report(f"{node.name}: {sentence}", urns.get((node.type, node.name)))

    return validate


def _stage(args: StackValidationArgs) -> str:
    # A URN begins with urn:pulumi:<stack>::
    return next((resource.urn.split(":")[2] for resource in args.resources), "")


def _node(resource: PolicyResource, by_urn: Mapping[str, Ref]) -> Node:
    props = resource.props
    inputs: dict[str, Any] = {}
    known = set(props)  # asking whether a key is in `props` raises where its value is unknown
    for key in {*known, *resource.property_dependencies}:
        depends = [by_urn[item.urn] for item in resource.property_dependencies.get(key, []) if item.urn in by_urn]
        unknown = depends[0] if len(depends) == 1 else UNKNOWN
        inputs[key] = _known(props, key, unknown) if key in known else unknown
    return Node(
        type=resource.resource_type,
        name=resource.name,
        inputs=inputs,
        parent=by_urn.get(resource.parent.urn) if resource.parent else None,
        protect=resource.opts.protect,
    )


def _known(holder: Any, key: Any, unknown: Any) -> Any:
    try:
        value = holder[key]
    except UnknownValueError:  # pulumi_policy raises it for every look at what a preview cannot know
        return unknown
    if isinstance(value, Mapping):
        return {name: _known(value, name, unknown) for name in cast("Mapping[str, Any]", value)}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_known(value, index, unknown) for index in range(len(cast("Sequence[Any]", value)))]
    return value
