"""What a table row is: one resource type, the inputs the local stage acts on, and the calls behind them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from local.aws.values import Props, as_object, canonical_json, comparable, in_any_order, is_empty

NOT_FOUND = frozenset(
    {
        "AWS.SimpleQueueService.NonExistentQueue",
        "NoSuchEntity",
        "NotFound",
        "NotFoundException",
        "QueueDoesNotExist",
        "ResourceNotFound",
        "ResourceNotFoundException",
    }
)
"""Error codes by which the services say that a resource is gone."""


class Call(Protocol):
    """What a row may use: clients of the emulator, and where it is."""

    @property
    def region(self) -> str: ...

    @property
    def account_id(self) -> str: ...

    def client(self, service: str) -> Any: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Property:
    """One input of a resource type.

    `default` is what AWS takes when the input is absent. `shared` inputs are also set by other resource types, so that
    their presence in the emulator is no drift. `local_gap` says what the local stage does not do with the input; with
    `write_only` the emulator does not give it back, and a refresh keeps the last state.
    """

    default: Any = None
    replaces: bool = False
    document: bool = False
    unordered: bool = False
    shared: bool = False
    write_only: bool = False
    local_gap: str = ""
    normal: Callable[[Any], Any] | None = None

    def comparable(self, value: Any) -> Any:
        """The value in a form in which equal means equal to AWS."""
        value = self.default if is_empty(value) else value
        if self.document and isinstance(value, str):
            value = canonical_json(value)
        if self.normal is not None:
            value = self.normal(value)
        value = comparable(value)
        return in_any_order(value) if self.unordered else value

    def same(self, one: Any, other: Any) -> bool:
        """Whether AWS would see no difference."""
        return self.comparable(one) == self.comparable(other)


def ignored(local_gap: str, **more: Any) -> Property:
    """An input that is accepted and never sent."""
    return Property(write_only=True, local_gap=local_gap, **more)


@dataclass(frozen=True, slots=True, kw_only=True)
class Naming:
    """How a resource without a stated name gets one, as the real provider does: `<logical name>-<7 hex digits>`."""

    property: str = "name"
    max_length: int
    prefix: str = ""
    suffix: Callable[[Props], str] = lambda _inputs: ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One resource type.

    `create` returns the id. `observe` returns what the emulator has now, under the names of inputs and outputs, or None
    when it is gone. `exists` are the error codes of a create whose name is taken; `locate` then gives the id of what is
    there, so that it can be taken over. A row with `refusal` cannot be created at all.
    """

    resource_type: str
    properties: Mapping[str, Property]
    create: Callable[[Call, Props], str]
    observe: Callable[[Call, str, Props], Props | None]
    update: Callable[[Call, str, Props, Props], None]
    delete: Callable[[Call, str, Props], None]
    naming: Naming | None = None
    exists: frozenset[str] = frozenset()
    locate: Callable[[Call, Props], str] | None = None
    tags: bool = False
    recomputed: tuple[str, ...] = ()
    local_gap: str = ""
    refusal: str = ""
    regional: bool = True
    accepted: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        extra = {"tags"} if self.tags else set[str]()
        object.__setattr__(
            self, "accepted", frozenset(self.properties) | extra | ({"region"} if self.regional else set())
        )

    def property(self, name: str) -> Property:
        """The declared property; one that compares by value for `tags` and for what is not declared."""
        return self.properties.get(name, _PLAIN)


_PLAIN = Property()


def changed(old: Props, new: Props, row: Row) -> frozenset[str]:
    """Names of the declared inputs that differ between two bags."""
    return frozenset(name for name, prop in row.properties.items() if not prop.same(old.get(name), new.get(name)))


def tag_map(tags: Any, key: str = "Key", value: str = "Value") -> dict[str, str]:
    """Tags as a map from the list of pairs that most services answer with."""
    return {pair[key]: pair[value] for pair in tags or ()}


def tag_list(tags: Any, key: str = "Key", value: str = "Value") -> list[dict[str, str]]:
    """Tags as the list of pairs that most services take."""
    return [{key: name, value: text} for name, text in (as_object(tags) or {}).items()]


def sync_tags(
    old: Any, new: Any, *, put: Callable[[dict[str, str]], object], remove: Callable[[list[str]], object]
) -> None:
    """Bring the tags from `old` to `new` with the service's own two calls."""
    before, after = as_object(old) or {}, as_object(new) or {}
    if gone := sorted(before.keys() - after.keys()):
        remove(gone)
    if fresh := {name: text for name, text in after.items() if before.get(name) != text}:
        put(fresh)
