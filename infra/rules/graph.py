"""The declared resource graph as plain data, for rules that look at several resources at once.

It is read off the program before anything is registered, so it is complete at every preview. What only AWS can know
is `UNKNOWN`, an attribute of another resource is a `Ref`, and a JSON document is the structure it was built from.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

import pulumi

from infra.policy_documents import JsonDocument


class _Unknown:
    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Final = _Unknown()


@dataclass(frozen=True, slots=True)
class Ref:
    """An attribute of another resource of the graph."""

    type: str
    name: str
    attribute: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One declared resource; `inputs` in Pulumi's own spelling (`visibilityTimeoutSeconds`)."""

    type: str
    name: str
    inputs: Mapping[str, Any]
    parent: Ref | None = None
    protect: bool = False

    def number(self, key: str, default: int = 0) -> int:
        """An input that is a number; `default` where it isn't set or isn't known."""
        value = self.inputs.get(key)
        return int(value) if isinstance(value, int | float) else default

    def text(self, key: str) -> str:
        """An input that is a text; empty where it isn't set or isn't known."""
        value = self.inputs.get(key)
        return value if isinstance(value, str) else ""

    def nested(self, key: str) -> Mapping[str, Any]:
        """An input that is an object; empty where it isn't set."""
        value = self.inputs.get(key)
        return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}

    def items(self, key: str) -> list[Any]:
        """An input that is a list; empty where it isn't set, what is unknown in whole as its only item."""
        value = self.inputs.get(key)
        if isinstance(value, Ref) or value is UNKNOWN:
            return [value]
        return list(cast("list[Any]", value)) if isinstance(value, list) else []

    def parsed(self, key: str) -> Any:
        """An input that is JSON, as a structure; None where it isn't set, isn't known or isn't JSON."""
        value = self.inputs.get(key)
        if isinstance(value, str):
            try:
                return json.loads(value)
            except ValueError:
                return None
        return value

    def document(self, key: str) -> dict[str, Any] | None:
        """As `parsed`, where the JSON is an object."""
        value = self.parsed(key)
        return cast("dict[str, Any]", value) if isinstance(value, dict) else None


@dataclass(frozen=True, kw_only=True)
class Graph:
    """All resources of a stage."""

    stage: str
    nodes: tuple[Node, ...]
    _index: dict[tuple[str, str], Node] = field(default_factory=dict[tuple[str, str], Node], compare=False, repr=False)

    def __post_init__(self) -> None:
        self._index.update({(node.type, node.name): node for node in self.nodes})

    def of(self, kind: str) -> Iterator[Node]:
        """The resources of one type."""
        return (node for node in self.nodes if node.type == kind)

    def target(self, value: Any, kind: str) -> Node | None:
        """The resource of type `kind` that `value` (a reference, an ARN, a URL, a name) stands for."""
        if isinstance(value, Ref):
            return self._index.get((value.type, value.name)) if value.type == kind else None
        if not isinstance(value, str):
            return None
        last = re.split(r"[:/]", value)[-1]
        return next((node for node in self.of(kind) if node.text("name") in (value, last)), None)

    def parent(self, node: Node) -> Node | None:
        """The component that declares the resource."""
        return self._index.get((node.parent.type, node.parent.name)) if node.parent else None


@dataclass
class Recorder:
    """Remembers every resource as it is declared; register `record` as a transformation of the stack."""

    _declared: list[pulumi.ResourceTransformationArgs] = field(default_factory=list[pulumi.ResourceTransformationArgs])

    def record(self, args: pulumi.ResourceTransformationArgs) -> None:
        self._declared.append(args)

    def graph(self, stage: str) -> Graph:
        """What was declared until now."""
        attributes: dict[int, Ref] = {}
        resources: dict[int, Ref] = {}
        for args in self._declared:
            resources[id(args.resource)] = Ref(args.type_, args.name)
            if not isinstance(args.resource, pulumi.CustomResource):
                continue  # a component's attributes are its children's
            for key, value in vars(args.resource).items():
                if isinstance(value, pulumi.Output):
                    attributes[id(cast("object", value))] = Ref(args.type_, args.name, key)
        plain = _Plain(attributes)
        nodes = tuple(
            Node(
                type=args.type_,
                name=args.name,
                inputs={camel(key): plain.of(value) for key, value in args.props.items() if value is not None},
                parent=resources.get(id(args.opts.parent)),
                protect=bool(args.opts.protect),
            )
            for args in self._declared
        )
        return Graph(stage=stage, nodes=nodes)


@dataclass(frozen=True, slots=True)
class _Plain:
    attributes: Mapping[int, Ref]

    def of(self, value: Any) -> Any:
        if isinstance(value, JsonDocument):
            return self.of(value.source)
        if isinstance(value, pulumi.Output):
            return self.attributes.get(id(cast("object", value)), UNKNOWN)
        if isinstance(value, Mapping):
            pairs = cast("Mapping[str, Any]", value).items()
            return {key: self.of(item) for key, item in pairs if item is not None}
        if isinstance(value, list | tuple):
            return [self.of(item) for item in cast("Iterable[Any]", value)]
        if isinstance(value, pulumi.Asset | pulumi.Archive):
            return getattr(value, "path", UNKNOWN)
        if hasattr(value, "__dict__") and type(value).__module__.startswith("pulumi_aws."):
            held = cast("dict[str, Any]", vars(value))
            return {camel(key): self.of(item) for key, item in held.items() if item is not None}
        return value


def camel(name: str) -> str:
    """`visibility_timeout_seconds` as Pulumi spells it: `visibilityTimeoutSeconds`."""
    return re.sub(r"_([a-z0-9])", lambda found: found[1].upper(), name)
