"""Create, read, update and delete of one resource through its table row."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from local.aws.table import NOT_FOUND, Call, Row, changed
from local.aws.values import UNKNOWN, Props, as_object, is_empty

if TYPE_CHECKING:
    from collections.abc import Callable

log = logging.getLogger(__name__)


class PluginError(Exception):
    """One sentence for the engine to show; what it is about is named in it."""


@dataclass(frozen=True, slots=True)
class State:
    """A resource as the engine stores it."""

    id: str
    inputs: Props
    outputs: Props


def error_code(error: Exception) -> str:
    """The service's own code of a botocore client error; empty for any other error."""
    response: Any = getattr(error, "response", None)
    return str(response["Error"].get("Code", "")) if response else ""


def create(call: Call, row: Row, inputs: Props, default_tags: Mapping[str, str]) -> State:
    """Create the resource, or take over what an `up` that ended half-way left under its name."""
    wanted = _with_all_tags(row, inputs, default_tags)
    taken_over = False
    try:
        resource_id = row.create(call, wanted)
    except Exception as error:
        if error_code(error) not in row.exists or row.locate is None:
            raise
        taken_over = True
        resource_id = row.locate(call, wanted)
    found = _must_observe(call, row, resource_id, wanted)
    if taken_over:
        _require_ours(row, resource_id, found, default_tags)
    # The create of some services answers with what is there, whatever was asked for.
    ours = {name: value for name, value in found.items() if name in wanted or not row.property(name).shared}
    if taken_over or _differs(row, ours, wanted):
        log.info("bringing %s in line", resource_id)
        row.update(call, resource_id, ours, wanted)
        found = _must_observe(call, row, resource_id, wanted)
    return State(resource_id, inputs, _outputs(call, row, inputs, found, default_tags))


def _require_ours(row: Row, resource_id: str, found: Props, default_tags: Mapping[str, str]) -> None:
    tags = as_object(found.get("tags")) or {}
    if row.tags and any(tags.get(key) != value for key, value in default_tags.items()):
        raise PluginError(f"'{resource_id}' exists already and does not carry this stage's tags")


def _differs(row: Row, found: Props, wanted: Props) -> bool:
    if row.tags and found.get("tags") != wanted.get("tags"):
        return True
    return any(name in found for name in changed(found, wanted, row))


def read(call: Call, row: Row, resource_id: str, state: Props, inputs: Props, tags: Mapping[str, str]) -> State | None:
    """What the emulator has now; None when it is gone. Inputs that agree keep the text the program wrote."""
    found = _observe(call, row, resource_id, {**state, **inputs})
    if found is None:
        return None
    now = dict(inputs)
    for name, prop in row.properties.items():
        if name not in found:
            continue
        value = found[name]
        if name in inputs:
            if not prop.same(inputs[name], value):
                now[name] = value
        elif not prop.same(None, value) and not (prop.shared and inputs):
            now[name] = value
    if row.tags:
        now["tags"] = _own_tags(as_object(found.get("tags")) or {}, as_object(inputs.get("tags")) or {}, tags)
    now = {key: value for key, value in now.items() if value is not None and (value != {} or key in inputs)}
    return State(resource_id, now, _outputs(call, row, now, found, tags))


def update(call: Call, row: Row, resource_id: str, old: Props, new: Props, default_tags: Mapping[str, str]) -> State:
    """Change the resource in place."""
    deployed = as_object(old.get("tagsAll")) or {}
    row.update(call, resource_id, {**old, "tags": deployed}, _with_all_tags(row, new, default_tags))
    found = _must_observe(call, row, resource_id, new)
    return State(resource_id, new, _outputs(call, row, new, found, default_tags))


def delete(call: Call, row: Row, resource_id: str, state: Props) -> None:
    """Delete the resource; one that is gone already is no error."""
    try:
        row.delete(call, resource_id, state)
    except Exception as error:
        if error_code(error) not in NOT_FOUND:
            raise


def planned(row: Row | None, inputs: Props, old_outputs: Props, default_tags: Mapping[str, str]) -> Props:
    """Outputs of a preview: inputs, what an update keeps, and nothing else, which the engine takes as unknown."""
    kept = dict(old_outputs)
    for name in row.recomputed if row is not None else old_outputs:
        if name in kept:
            kept[name] = UNKNOWN
    outputs = {**kept, **inputs}
    if row is not None and row.tags:
        outputs["tagsAll"] = _with_all_tags(row, inputs, default_tags)["tags"]
    return outputs


def _observe(call: Call, row: Row, resource_id: str, inputs: Props) -> Props | None:
    observe: Callable[[Call, str, Props], Props | None] = row.observe
    try:
        return observe(call, resource_id, inputs)
    except Exception as error:
        if error_code(error) in NOT_FOUND:
            return None
        raise


def _must_observe(call: Call, row: Row, resource_id: str, inputs: Props) -> Props:
    found = _observe(call, row, resource_id, inputs)
    if found is None:
        raise PluginError(f"'{resource_id}' was written and cannot be read back from the emulator")
    return found


def _outputs(call: Call, row: Row, inputs: Props, found: Props, default_tags: Mapping[str, str]) -> Props:
    outputs = {key: value for key, value in found.items() if value is not None}
    for name, value in inputs.items():
        if name not in found or row.property(name).same(value, found[name]):
            outputs[name] = value
    for name, prop in row.properties.items():
        if prop.shared and name not in inputs:
            outputs.pop(name, None)
    outputs.pop("tags", None)
    if row.tags:
        deployed = as_object(found.get("tags")) or {}
        outputs["tagsAll"] = deployed
        if not is_empty(own := _own_tags(deployed, as_object(inputs.get("tags")) or {}, default_tags)):
            outputs["tags"] = own
    if row.regional:
        outputs["region"] = call.region
    return outputs


def _with_all_tags(row: Row, inputs: Props, default_tags: Mapping[str, str]) -> Props:
    return {**inputs, "tags": {**default_tags, **(as_object(inputs.get("tags")) or {})}} if row.tags else inputs


def _own_tags(deployed: Props, stated: Props, default_tags: Mapping[str, str]) -> Props:
    return {key: value for key, value in deployed.items() if key in stated or default_tags.get(key) != value}
