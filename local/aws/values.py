"""Property values as the engine sends them: unknowns, secrets, archives, JSON text."""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias, cast

from google.protobuf import struct_pb2

Props: TypeAlias = dict[str, Any]

UNKNOWN: Final = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
"""What the engine writes, in a preview, for a value that is known only after `up`."""

_SIGNATURE: Final = "4dabf18193072939515e22adb298388d"
_SECRET: Final = "1b47061264138c4ac30d75fd1eb44270"  # noqa: S105  (the engine's marker, not a password)
_OUTPUT: Final = "d0e6a833031e9bbcd3f4e8bde6ca49a4"
_ASSET: Final = "c44067f5952c0a294b673a41bacd8c17"
_ARCHIVE: Final = "0def7320c3a5731c473e5ecbe6d01bc7"


def as_object(value: Any) -> Props | None:
    """The value as a property bag, or None when it is something else."""
    return cast("Props", value) if isinstance(value, dict) else None


def as_list(value: Any) -> list[Any]:
    """The value as a list; a missing one is empty."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def from_struct(struct: struct_pb2.Struct) -> Props:
    """Plain values of a protobuf struct: whole numbers as int, secrets and outputs unwrapped."""
    return {key: _plain(value) for key, value in struct.fields.items()}


def _plain(value: struct_pb2.Value) -> Any:
    kind = value.WhichOneof("kind")
    if kind == "struct_value":
        return _unwrapped(from_struct(value.struct_value))
    if kind == "list_value":
        return [_plain(item) for item in value.list_value.values]
    if kind == "number_value":
        number = value.number_value
        return int(number) if number.is_integer() else number
    if kind == "string_value":
        return value.string_value
    if kind == "bool_value":
        return value.bool_value
    return None


def _unwrapped(bag: Props) -> Any:
    signature = bag.get(_SIGNATURE)
    if signature == _SECRET:
        return bag.get("value")
    if signature == _OUTPUT:
        return bag.get("value", UNKNOWN)
    return bag


def to_struct(values: Mapping[str, Any]) -> struct_pb2.Struct:
    """A protobuf struct of plain values."""
    struct = struct_pb2.Struct()
    struct.update(values)
    return struct


def is_asset(value: Any) -> bool:
    """Whether the value is an asset or an archive of the engine."""
    bag = as_object(value)
    return bag is not None and bag.get(_SIGNATURE) in (_ASSET, _ARCHIVE)


def archive_of_hash(digest: str) -> Props:
    """An archive whose content is not at hand."""
    return {_SIGNATURE: _ARCHIVE, "hash": digest, "assets": {}}


def has_unknown(value: Any) -> bool:
    """Whether any part of the value is known only after `up`."""
    if value == UNKNOWN:
        return True
    if (bag := as_object(value)) is not None:
        return any(has_unknown(item) for item in bag.values())
    return any(has_unknown(item) for item in as_list(value))


def is_empty(value: Any) -> bool:
    """Whether AWS takes the value as not given: nothing, an empty text, list or map."""
    return value is None or value in ("", [], {})


def canonical_json(text: str) -> str:
    """The document with sorted keys and no spaces; text that is not a JSON object or list is returned as it is."""
    if text == UNKNOWN:
        return text
    try:
        document: Any = json.loads(text)
    except ValueError:
        return text
    return compact_json(document) if isinstance(document, (dict, list)) else text


def compact_json(value: Any) -> str:
    """Sorted keys, no spaces."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def comparable(value: Any) -> Any:
    """The value with assets reduced to the hash of their content, so that a path is no difference."""
    bag = as_object(value)
    if bag is not None:
        if is_asset(bag) and bag.get("hash"):
            return {"hash": bag["hash"]}
        return {key: comparable(item) for key, item in bag.items()}
    if isinstance(value, list):
        return [comparable(item) for item in as_list(value)]
    return value


def in_any_order(value: Any) -> Any:
    """A list as its sorted items."""
    return sorted(as_list(value), key=compact_json) if isinstance(value, list) else value


def camel(value: Any) -> Any:
    """A response of the AWS API with the engine's spelling of its keys, at every depth: `RoleArn` is `roleArn`."""
    return _respelled(value, str.lower)


def pascal(value: Any) -> Any:
    """An input with the AWS API's spelling of its keys, at every depth: `roleArn` is `RoleArn`."""
    return _respelled(value, str.upper)


def _respelled(value: Any, spell: Callable[[str], str]) -> Any:
    bag = as_object(value)
    if bag is not None:
        return {spell(key[:1]) + key[1:]: _respelled(item, spell) for key, item in bag.items()}
    if isinstance(value, list):
        return [_respelled(item, spell) for item in as_list(value)]
    return value


def without(bag: Mapping[str, Any], names: Iterable[str]) -> Props:
    """The bag less some keys."""
    dropped = frozenset(names)
    return {key: value for key, value in bag.items() if key not in dropped}


def without_defaults(value: Any, defaults: Mapping[str, Any]) -> Any:
    """A nested input less what AWS would have taken anyway, so that a default spelled out is no difference."""
    bag = as_object(value)
    if bag is None:
        return value
    return {key: item for key, item in bag.items() if not is_empty(item) and item != defaults.get(key)} or None
