"""Event source mappings: what feeds a function from a queue."""

from typing import Any

from local.aws.rows.functions import function_name
from local.aws.table import Call, Property, Row, changed, ignored, sync_tags
from local.aws.values import Props, as_list, as_object, camel, pascal, without_defaults

# Input of the engine, field of the API, property; all of them can change in place.
_FIELDS: dict[str, tuple[str, Property]] = {
    "functionName": ("FunctionName", Property(normal=function_name)),
    "batchSize": ("BatchSize", Property(default=10)),
    "maximumBatchingWindowInSeconds": (
        "MaximumBatchingWindowInSeconds",
        Property(default=0, local_gap="stored; a batch is whatever waits when the emulator looks"),
    ),
    "functionResponseTypes": ("FunctionResponseTypes", Property(unordered=True)),
    "scalingConfig": ("ScalingConfig", Property(normal=lambda value: without_defaults(value, {}))),
    "filterCriteria": ("FilterCriteria", Property(normal=lambda value: without_defaults(value, {}))),
    "enabled": ("Enabled", Property(default=True)),
}


def _request(inputs: Props, names: frozenset[str]) -> Props:
    request: Props = {}
    for name in names & _FIELDS.keys():
        field, prop = _FIELDS[name]
        value = inputs.get(name, prop.default)
        empty: Any = [] if name == "functionResponseTypes" else {}
        request[field] = empty if value is None else pascal(value)
    return request


def _create(call: Call, inputs: Props) -> str:
    if (present := _present(call, inputs)) is not None:
        # AWS takes one mapping per queue and function; the emulator would take a second one.
        call.client("lambda").update_event_source_mapping(UUID=present, **_request(inputs, frozenset(_FIELDS)))
        return present
    stated = frozenset(name for name in _FIELDS if inputs.get(name) is not None)
    created = call.client("lambda").create_event_source_mapping(
        EventSourceArn=inputs["eventSourceArn"], Tags=inputs["tags"], **_request(inputs, stated)
    )
    return str(created["UUID"])


def _present(call: Call, inputs: Props) -> str | None:
    found = call.client("lambda").list_event_source_mappings(
        EventSourceArn=inputs["eventSourceArn"], FunctionName=inputs["functionName"]
    )["EventSourceMappings"]
    return str(found[0]["UUID"]) if found else None


def _observe(call: Call, uuid: str, _inputs: Props) -> Props | None:
    client = call.client("lambda")
    found = client.get_event_source_mapping(UUID=uuid)
    if found["State"] == "Deleting":
        return None
    filters = [camel(item) for item in as_list((as_object(found.get("FilterCriteria")) or {}).get("Filters"))]
    arn = found["EventSourceMappingArn"]
    return {
        "uuid": uuid,
        "arn": arn,
        "functionName": function_name(found["FunctionArn"]),
        "functionArn": found["FunctionArn"],
        "eventSourceArn": found["EventSourceArn"],
        "batchSize": found["BatchSize"],
        "maximumBatchingWindowInSeconds": found.get("MaximumBatchingWindowInSeconds", 0),
        "functionResponseTypes": found.get("FunctionResponseTypes") or None,
        "scalingConfig": camel(found.get("ScalingConfig")) or None,
        "filterCriteria": {"filters": filters} if filters else None,
        "enabled": found["State"] in ("Enabled", "Enabling", "Creating"),
        "tags": client.list_tags(Resource=arn).get("Tags", {}),
    }


def _update(call: Call, uuid: str, old: Props, new: Props) -> None:
    client = call.client("lambda")
    if request := _request(new, changed(old, new, MAPPING)):
        client.update_event_source_mapping(UUID=uuid, **request)
    sync_tags(
        old.get("tags"),
        new.get("tags"),
        put=lambda tags: client.tag_resource(Resource=old["arn"], Tags=tags),
        remove=lambda keys: client.untag_resource(Resource=old["arn"], TagKeys=keys),
    )


def _delete(call: Call, uuid: str, _state: Props) -> None:
    call.client("lambda").delete_event_source_mapping(UUID=uuid)


MAPPING = Row(
    resource_type="aws:lambda/eventSourceMapping:EventSourceMapping",
    properties={
        "eventSourceArn": Property(replaces=True),
        **{name: prop for name, (_, prop) in _FIELDS.items()},
        "metricsConfig": ignored("no metric of a mapping is published"),
    },
    create=_create,
    observe=_observe,
    update=_update,
    delete=_delete,
    tags=True,
)

ROWS = (MAPPING,)
