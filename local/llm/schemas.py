"""What OpenAI's strict mode accepts of JSON Schema, checked as the real API checks it.

Source: the structured outputs guide, "Supported schemas". The walk stops at the first fault, as the API does.
"""

from collections.abc import Mapping
from typing import Any, Final, cast

MAX_DEPTH: Final = 10
MAX_PROPERTIES: Final = 5000

_FORBIDDEN: Final = frozenset(
    {
        "allOf",
        "oneOf",
        "not",
        "if",
        "then",
        "else",
        "dependentRequired",
        "dependentSchemas",
        "patternProperties",
        "propertyNames",
        "unevaluatedProperties",
        "unevaluatedItems",
        "uniqueItems",
        "contains",
        "minProperties",
        "maxProperties",
        "default",
    }
)

Schema = Mapping[str, Any]


def strict_fault(schema: object) -> str | None:
    """The first reason why strict mode refuses `schema`, or None."""
    if not isinstance(schema, Mapping):
        return "schema must be a JSON object"
    root = cast(Schema, schema)
    if root.get("type") != "object":
        return f"schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{root.get('type')}\"'"
    definitions: dict[str, Any] = {**root.get("definitions", {}), **root.get("$defs", {})}
    walk = _Walk(definitions)
    fault = walk.fault(root, (), 0)
    for name, definition in definitions.items():
        fault = fault or walk.fault(definition, ("$defs", name), 0)
    if fault is None and walk.properties > MAX_PROPERTIES:
        fault = f"schema has {walk.properties} properties, more than {MAX_PROPERTIES}"
    return fault


class _Walk:
    def __init__(self, definitions: Mapping[str, Any]) -> None:
        self.definitions = definitions
        self.properties = 0

    def fault(self, node: object, context: tuple[str, ...], depth: int) -> str | None:
        if not isinstance(node, Mapping):
            return f"In context={context!r}, schema must be an object."
        schema = cast(Schema, node)
        for keyword in schema:
            if keyword in _FORBIDDEN:
                return f"In context={context!r}, '{keyword}' is not permitted."
        if "$ref" in schema:
            return self._reference_fault(schema, context)
        if "anyOf" in schema:
            return self._first(
                (branch, (*context, "anyOf", str(index)), depth) for index, branch in enumerate(schema["anyOf"])
            )
        kind = schema.get("type")
        if kind is None and "const" not in schema and "enum" not in schema:
            return f"In context={context!r}, schema must have a 'type' key."
        if kind == "object" or (isinstance(kind, list) and "object" in kind):
            return self._object_fault(schema, context, depth + 1)
        if kind == "array" or (isinstance(kind, list) and "array" in kind):
            if "items" not in schema:
                return f"In context={context!r}, array schema missing items."
            return self.fault(schema["items"], (*context, "items"), depth)
        return None

    def _reference_fault(self, schema: Schema, context: tuple[str, ...]) -> str | None:
        others = sorted(set(schema) - {"$ref"})
        if others:
            return f"In context={context!r}, $ref cannot have keywords {set(others)!r}."
        target = str(schema["$ref"])
        if target != "#" and target.rsplit("/", 1)[-1] not in self.definitions:
            return f"In context={context!r}, reference '{target}' does not resolve."
        return None

    def _object_fault(self, schema: Schema, context: tuple[str, ...], depth: int) -> str | None:
        if depth > MAX_DEPTH:
            return f"In context={context!r}, schema is nested deeper than {MAX_DEPTH} levels."
        if schema.get("additionalProperties") is not False:
            return f"In context={context!r}, 'additionalProperties' is required to be supplied and to be false."
        properties: Mapping[str, Any] = schema.get("properties", {})
        self.properties += len(properties)
        required = schema.get("required", [])
        for name in properties:
            if name not in required:
                return (
                    f"In context={context!r}, 'required' is required to be supplied and to be an array including every "
                    f"key in properties. Missing '{name}'."
                )
        for name in required:
            if name not in properties:
                return f"In context={context!r}, 'required' names '{name}', which is no property."
        return self._first((node, (*context, "properties", name), depth) for name, node in properties.items())

    def _first(self, nodes: Any) -> str | None:
        for node, context, depth in nodes:
            fault = self.fault(node, context, depth)
            if fault is not None:
                return fault
        return None
