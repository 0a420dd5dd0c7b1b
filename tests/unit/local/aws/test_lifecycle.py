"""Create, read, update and delete through a row, over an emulator that is a dictionary."""

import dataclasses
from typing import Any

import pytest

from local.aws import lifecycle
from local.aws.lifecycle import PluginError, State
from local.aws.table import Call, Naming, Property, Row, changed
from local.aws.values import UNKNOWN, Props

TAGS = {"stage": "local"}


class ServiceError(Exception):
    """As botocore raises them: the code is in `response`."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.response = {"Error": {"Code": code}}


class Store(Call):
    """The things there are, by name; `client` is never needed."""

    def __init__(self) -> None:
        self.things: dict[str, Props] = {}

    @property
    def region(self) -> str:
        return "eu-west-1"

    @property
    def account_id(self) -> str:
        return "000000000000"

    def client(self, service: str) -> Any:
        raise AssertionError(f"no client of {service} is needed")


def create(call: Call, inputs: Props) -> str:
    things = things_of(call)
    if inputs["name"] in things:
        raise ServiceError("AlreadyThere")
    things[inputs["name"]] = dict(inputs)
    return str(inputs["name"])


def observe(call: Call, resource_id: str, _inputs: Props) -> Props | None:
    thing = things_of(call).get(resource_id)
    if thing is None:
        raise ServiceError("NotFoundException")
    return {
        "name": resource_id,
        "arn": f"arn:{resource_id}",
        "size": thing.get("size", 1),
        "policy": thing.get("policy"),
        "owner": thing.get("owner"),
        "tags": thing["tags"],
    }


def update(call: Call, resource_id: str, old: Props, new: Props) -> None:
    thing = things_of(call)[resource_id]
    for name in changed(old, new, THING):
        thing[name] = new.get(name, THING.properties[name].default)
    thing["tags"] = new["tags"]


def delete(call: Call, resource_id: str, _state: Props) -> None:
    if things_of(call).pop(resource_id, None) is None:
        raise ServiceError("NotFoundException")


def things_of(call: Call) -> dict[str, Props]:
    assert isinstance(call, Store)
    return call.things


THING = Row(
    resource_type="aws:test/thing:Thing",
    properties={
        "name": Property(replaces=True),
        "size": Property(default=1),
        "policy": Property(document=True),
        "owner": Property(shared=True),
        "secretWord": Property(write_only=True),
    },
    naming=Naming(max_length=20),
    create=create,
    observe=observe,
    update=update,
    delete=delete,
    exists=frozenset({"AlreadyThere"}),
    locate=lambda _call, inputs: str(inputs["name"]),
    tags=True,
    recomputed=("version",),
)


def read(store: Store, state: State) -> State | None:
    return lifecycle.read(store, THING, state.id, state.outputs, state.inputs, TAGS)


def test_outputs_are_inputs_and_what_the_emulator_adds() -> None:
    state = lifecycle.create(Store(), THING, {"name": "a", "tags": {"x": "1"}}, TAGS)
    assert state.id == "a"
    assert state.outputs == {
        "name": "a",
        "arn": "arn:a",
        "size": 1,
        "tags": {"x": "1"},
        "tagsAll": {"stage": "local", "x": "1"},
        "region": "eu-west-1",
    }


def test_a_refresh_right_after_a_create_finds_no_drift() -> None:
    store = Store()
    inputs = {"name": "a", "policy": '{"a":1}', "secretWord": "x", "size": 1, "tags": {"x": "1"}}
    state = lifecycle.create(store, THING, inputs, TAGS)
    store.things["a"]["policy"] = '{\n "a": 1\n}'  # the same document in the emulator's own writing
    assert read(store, state) == State("a", inputs, state.outputs)


def test_drift_of_a_stated_and_of_an_unstated_input_is_seen() -> None:
    store = Store()
    state = lifecycle.create(store, THING, {"name": "a", "policy": '{"a":1}'}, TAGS)
    store.things["a"].update(size=9, policy='{"a":2}')
    seen = read(store, state)
    assert seen is not None
    assert seen.inputs == {"name": "a", "policy": '{"a":2}', "size": 9}
    assert seen.outputs["size"] == 9


def test_what_another_resource_set_is_no_drift() -> None:
    store = Store()
    state = lifecycle.create(store, THING, {"name": "a"}, TAGS)
    store.things["a"]["owner"] = "someone"
    assert read(store, state) == state


def test_changed_and_lost_tags_are_drift() -> None:
    store = Store()
    state = lifecycle.create(store, THING, {"name": "a", "tags": {"x": "1"}}, TAGS)
    store.things["a"]["tags"] = {"x": "2"}
    seen = read(store, state)
    assert seen is not None
    assert seen.inputs["tags"] == {"x": "2"}
    assert seen.outputs["tagsAll"] == {"x": "2"}, "a lost default tag shows in tagsAll"


def test_a_resource_that_is_gone_reads_as_none_and_deletes_without_error() -> None:
    store = Store()
    state = lifecycle.create(store, THING, {"name": "a"}, TAGS)
    store.things.clear()
    assert read(store, state) is None
    lifecycle.delete(store, THING, "a", state.outputs)


def test_an_update_writes_the_difference_and_reads_it_back() -> None:
    store = Store()
    state = lifecycle.create(store, THING, {"name": "a", "size": 5}, TAGS)
    changed_state = lifecycle.update(store, THING, "a", state.outputs, {"name": "a"}, TAGS)
    assert store.things["a"]["size"] == 1, "an input taken away goes back to its default"
    assert changed_state.outputs["size"] == 1


def test_what_an_up_left_half_way_is_taken_over_and_brought_in_line() -> None:
    store = Store()
    store.things["a"] = {"name": "a", "size": 7, "tags": {**TAGS, "old": "1"}}
    state = lifecycle.create(store, THING, {"name": "a", "size": 2}, TAGS)
    assert state.id == "a"
    assert store.things["a"]["size"] == 2
    assert store.things["a"]["tags"] == TAGS


def test_a_create_that_answers_with_what_is_there_is_brought_in_line() -> None:
    def idempotent(call: Call, inputs: Props) -> str:
        things_of(call).setdefault(inputs["name"], dict(inputs))
        return str(inputs["name"])

    store = Store()
    store.things["a"] = {"name": "a", "size": 7, "owner": "someone", "tags": {}}
    state = lifecycle.create(store, dataclasses.replace(THING, create=idempotent), {"name": "a"}, TAGS)
    assert store.things["a"] == {"name": "a", "size": 1, "owner": "someone", "tags": TAGS}
    assert state.outputs["size"] == 1


def test_what_belongs_to_another_stage_is_not_taken_over() -> None:
    store = Store()
    store.things["a"] = {"name": "a", "size": 7, "tags": {"stage": "another"}}
    with pytest.raises(PluginError, match="does not carry this stage's tags"):
        lifecycle.create(store, THING, {"name": "a"}, TAGS)
    assert store.things["a"]["size"] == 7


def test_an_error_that_is_not_about_the_name_is_raised() -> None:
    def refuse(_call: Call, _inputs: Props) -> str:
        raise ServiceError("InvalidInput")

    row = Row(
        resource_type="aws:test/thing:Thing",
        properties={},
        create=refuse,
        observe=observe,
        update=update,
        delete=delete,
        exists=frozenset({"AlreadyThere"}),
        locate=lambda _call, _inputs: "a",
    )
    with pytest.raises(ServiceError, match="InvalidInput"):
        lifecycle.create(Store(), row, {}, {})


def test_a_planned_create_knows_its_inputs_and_nothing_else() -> None:
    planned = lifecycle.planned(THING, {"name": "a", "size": UNKNOWN}, {}, TAGS)
    assert planned == {"name": "a", "size": UNKNOWN, "tagsAll": TAGS}, "the engine takes what is missing as unknown"


def test_a_planned_update_keeps_what_stays_and_hides_what_is_made_anew() -> None:
    planned = lifecycle.planned(THING, {"size": 2}, {"arn": "arn:a", "size": 1, "version": "1"}, {})
    assert planned == {"arn": "arn:a", "size": 2, "version": UNKNOWN, "tagsAll": {}}
    assert lifecycle.planned(None, {"cpu": 2}, {"arn": "arn:a"}, {}) == {"arn": UNKNOWN, "cpu": 2}
