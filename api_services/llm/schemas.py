"""Response models that OpenAI's strict mode accepts, and the check that says why one is not."""

from collections.abc import Iterator
from functools import cache
from typing import Any, Final, cast

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

MAX_DEPTH: Final = 10
MAX_PROPERTIES: Final = 5_000
"""Both of OpenAI's guide to structured outputs."""

_REFUSED_KEYWORDS: Final = frozenset(
    {
        "default", "allOf", "oneOf", "not", "if", "then", "else", "dependentRequired", "dependentSchemas",
        "patternProperties", "unevaluatedProperties", "propertyNames", "minProperties", "maxProperties",
        "contains", "minContains", "maxContains", "uniqueItems", "prefixItems", "minLength", "maxLength",
    }
)  # fmt: skip


class StructuredOutput(BaseModel):
    """Base of every model the language model fills in: closed, and without defaults, so that all keys are required."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, alias_generator=to_camel, validate_by_name=True, validate_by_alias=True
    )


@cache
def strict_schema(model: type[BaseModel]) -> dict[str, Any]:
    """The schema to send; `ValueError` with every reason where strict mode would refuse it."""
    schema = cast(dict[str, Any], _without_ref_siblings(model.model_json_schema()))
    faults = list(strict_faults(schema))
    if faults:
        raise ValueError(f"{model.__name__} is not a strict schema: {'; '.join(faults)}")
    return schema


def strict_faults(schema: dict[str, Any]) -> Iterator[str]:
    """Why strict mode would refuse this schema, each with its place."""
    if schema.get("type") != "object" or "anyOf" in schema:
        yield "the root is not an object"
    properties = 0
    for path, node in _nodes(schema, "$"):
        for keyword in sorted(_REFUSED_KEYWORDS & node.keys()):
            yield f"{path}: '{keyword}' is not permitted"
        if "$ref" in node and len(node) > 1:
            yield f"{path}: '$ref' stands beside other keywords"
        if node.get("type") == "object" or "properties" in node:
            names: dict[str, Any] = node.get("properties", {})
            properties += len(names)
            if node.get("additionalProperties") is not False:
                yield f"{path}: the object is not closed"
            missing = sorted(names.keys() - set(node.get("required", [])))
            if missing:
                yield f"{path}: not required: {', '.join(missing)}"
        if path.count(".") > MAX_DEPTH:
            yield f"{path}: nested deeper than {MAX_DEPTH}"
        if not node.keys() & {"type", "$ref", "anyOf", "enum", "const"}:
            yield f"{path}: anything would fit"
    if properties > MAX_PROPERTIES:
        yield f"more than {MAX_PROPERTIES} properties"


def _nodes(node: Any, path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every subschema with its place, definitions included."""
    yield path, node
    for group in ("properties", "$defs"):
        for name, child in cast(dict[str, Any], node.get(group, {})).items():
            yield from _nodes(child, f"{path}.{name}")
    if isinstance(node.get("items"), dict):
        yield from _nodes(node["items"], f"{path}[]")
    for index, child in enumerate(cast(list[Any], node.get("anyOf", []))):
        yield from _nodes(child, f"{path}|{index}")
    if isinstance(node.get("additionalProperties"), dict):
        yield from _nodes(node["additionalProperties"], f"{path}.*")


def _without_ref_siblings(node: Any) -> Any:
    """pydantic leaves a field's description beside its `$ref`, which strict mode refuses."""
    if isinstance(node, list):
        return [_without_ref_siblings(item) for item in cast(list[Any], node)]
    if not isinstance(node, dict):
        return node
    fields = cast(dict[str, Any], node)
    if isinstance(fields.get("$ref"), str):
        return {"$ref": fields["$ref"]}
    return {key: _without_ref_siblings(value) for key, value in fields.items()}
