"""Schedules of EventBridge Scheduler and their groups."""

from typing import Any

from local.aws.table import Call, Naming, Property, Row, sync_tags, tag_list, tag_map
from local.aws.values import Props, as_object, camel, canonical_json, is_empty, pascal, without_defaults

_RETRY_DEFAULTS = {"maximumEventAgeInSeconds": 86_400, "maximumRetryAttempts": 185}

# Input of the engine, field of the API, property.
_FIELDS: dict[str, tuple[str, Property]] = {
    "scheduleExpression": ("ScheduleExpression", Property()),
    "scheduleExpressionTimezone": (
        "ScheduleExpressionTimezone",
        Property(default="UTC", local_gap="stored; cron expressions are read in UTC"),
    ),
    "description": ("Description", Property()),
    "state": ("State", Property(default="ENABLED")),
    "actionAfterCompletion": ("ActionAfterCompletion", Property(default="NONE")),
    "flexibleTimeWindow": (
        "FlexibleTimeWindow",
        Property(normal=lambda value: without_defaults(value, {}), local_gap="stored; a schedule runs when it is due"),
    ),
    "kmsKeyArn": ("KmsKeyArn", Property(write_only=True, local_gap="sent; the emulator encrypts nothing")),
}


def target(value: Any) -> Any:
    """A target less the retry policy AWS takes anyway, its input as canonical JSON."""
    bag = as_object(value)
    if bag is None:
        return value
    plain = {key: item for key, item in bag.items() if not is_empty(item)}
    if (retry := without_defaults(plain.pop("retryPolicy", None), _RETRY_DEFAULTS)) is not None:
        plain["retryPolicy"] = retry
    if isinstance(plain.get("input"), str):
        plain["input"] = canonical_json(plain["input"])
    return plain


def _names(resource_id: str) -> tuple[str, str]:
    group, _, name = resource_id.partition("/")
    return group, name


def _request(inputs: Props) -> Props:
    fields = {field: pascal(inputs[name]) for name, (field, _) in _FIELDS.items() if not is_empty(inputs.get(name))}
    return {
        "Name": inputs["name"],
        "GroupName": inputs.get("groupName", "default"),
        "Target": pascal(inputs["target"]),
        **fields,
    }


def _create(call: Call, inputs: Props) -> str:
    request = _request(inputs)
    call.client("scheduler").create_schedule(**request)
    return f"{request['GroupName']}/{request['Name']}"


def _observe(call: Call, resource_id: str, _inputs: Props) -> Props | None:
    group, name = _names(resource_id)
    found = call.client("scheduler").get_schedule(GroupName=group, Name=name)
    return {
        "name": name,
        "groupName": group,
        "arn": found["Arn"],
        "target": camel(found["Target"]),
        **{key: camel(found.get(field)) or None for key, (field, prop) in _FIELDS.items() if not prop.write_only},
    }


def _update(call: Call, _resource_id: str, _old: Props, new: Props) -> None:
    call.client("scheduler").update_schedule(**_request(new))


def _delete(call: Call, resource_id: str, _state: Props) -> None:
    group, name = _names(resource_id)
    call.client("scheduler").delete_schedule(GroupName=group, Name=name)


SCHEDULE = Row(
    resource_type="aws:scheduler/schedule:Schedule",
    properties={
        "name": Property(replaces=True),
        "groupName": Property(default="default", replaces=True),
        "target": Property(
            normal=target,
            local_gap="called under no role; neither its retry policy nor its dead-letter queue is applied",
        ),
        **{name: prop for name, (_, prop) in _FIELDS.items()},
    },
    naming=Naming(max_length=64),
    create=_create,
    observe=_observe,
    update=_update,
    delete=_delete,
    exists=frozenset({"ConflictException"}),
    locate=lambda _call, inputs: f"{inputs.get('groupName', 'default')}/{inputs['name']}",
)


def _create_group(call: Call, inputs: Props) -> str:
    call.client("scheduler").create_schedule_group(Name=inputs["name"], Tags=tag_list(inputs["tags"]))
    return str(inputs["name"])


def _observe_group(call: Call, name: str, _inputs: Props) -> Props | None:
    client = call.client("scheduler")
    found = client.get_schedule_group(Name=name)
    tags = client.list_tags_for_resource(ResourceArn=found["Arn"]).get("Tags")
    return {"name": name, "arn": found["Arn"], "tags": tag_map(tags)}


def _update_group(call: Call, _name: str, old: Props, new: Props) -> None:
    client = call.client("scheduler")
    sync_tags(
        old.get("tags"),
        new.get("tags"),
        put=lambda tags: client.tag_resource(ResourceArn=old["arn"], Tags=tag_list(tags)),
        remove=lambda keys: client.untag_resource(ResourceArn=old["arn"], TagKeys=keys),
    )


def _delete_group(call: Call, name: str, _state: Props) -> None:
    call.client("scheduler").delete_schedule_group(Name=name)


GROUP = Row(
    resource_type="aws:scheduler/scheduleGroup:ScheduleGroup",
    properties={"name": Property(replaces=True)},
    naming=Naming(max_length=64),
    create=_create_group,
    observe=_observe_group,
    update=_update_group,
    delete=_delete_group,
    exists=frozenset({"ConflictException"}),
    locate=lambda _call, inputs: str(inputs["name"]),
    tags=True,
)

ROWS = (SCHEDULE, GROUP)
