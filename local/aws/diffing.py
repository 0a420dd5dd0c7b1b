"""Diff: which inputs changed, and which changes replace the resource as AWS would."""

from collections.abc import Mapping
from dataclasses import dataclass

from local.aws.table import Row
from local.aws.values import Props, as_object, has_unknown, is_empty

_ENGINE_KEYS = frozenset({"__defaults", "__meta"})


@dataclass(frozen=True, slots=True)
class Change:
    """One changed input; `kind` is add, delete or update."""

    kind: str
    replaces: bool


@dataclass(frozen=True, slots=True)
class Difference:
    """Changes by input, and whether the old resource must go before the new one can come."""

    changes: Mapping[str, Change]
    delete_before_replace: bool = False

    @property
    def replaces(self) -> list[str]:
        return sorted(name for name, change in self.changes.items() if change.replaces)


def diff(
    row: Row | None, old_inputs: Props, old_outputs: Props, news: Props, default_tags: Mapping[str, str]
) -> Difference:
    """Compare inputs as AWS would; types without a row (offline previews only) by value."""
    names = (old_inputs.keys() | news.keys()) - _ENGINE_KEYS
    changes: dict[str, Change] = {}
    for name in sorted(names):
        if name == "tags":
            continue
        old, new = old_inputs.get(name), news.get(name)
        if row is None:
            equal = old == new
        elif name == "region":
            equal = (old or old_outputs.get("region") or new) == (new or old_outputs.get("region") or old)
        else:
            equal = row.property(name).same(old, new)
        if not equal or has_unknown(new):
            changes[name] = Change(_kind(old, new), _replaces(row, name))
    changes.update(_tag_changes(old_inputs, old_outputs, news, default_tags))
    replaced = any(change.replaces for change in changes.values())
    return Difference(changes, delete_before_replace=replaced and _keeps_its_name(row, old_inputs, news))


def _replaces(row: Row | None, name: str) -> bool:
    return row is not None and (name == "region" or row.property(name).replaces)


def _keeps_its_name(row: Row | None, old_inputs: Props, news: Props) -> bool:
    if row is None or row.naming is None:
        return False
    key = row.naming.property
    return old_inputs.get(key) == news.get(key)


def _kind(old: object, new: object) -> str:
    if is_empty(old):
        return "add"
    return "delete" if is_empty(new) else "update"


def _tag_changes(
    old_inputs: Props, old_outputs: Props, news: Props, default_tags: Mapping[str, str]
) -> dict[str, Change]:
    old, new = as_object(old_inputs.get("tags")) or {}, news.get("tags")
    if has_unknown(new):
        return {"tags": Change(_kind(old, new), replaces=False)}
    stated = as_object(new) or {}
    if old != stated:
        return {"tags": Change(_kind(old, stated), replaces=False)}
    deployed = as_object(old_outputs.get("tagsAll"))
    if deployed is not None and deployed != {**default_tags, **stated}:
        return {"tagsAll": Change("update", replaces=False)}
    return {}
