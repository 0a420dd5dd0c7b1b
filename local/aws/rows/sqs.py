"""Queues and what is set on them by resources of their own."""

import json
from typing import Any

from local.aws.table import Call, Naming, Property, Row, changed, sync_tags
from local.aws.values import Props, as_object, canonical_json

_NOT_ENCRYPTED = "stored; the emulator encrypts nothing"
_POLICY_NOT_ENFORCED = "stored; the emulator speaks plain HTTP and lets every caller in"


def redrive(document: Any) -> Any:
    """A redrive policy whose receive count is a number, since AWS takes `"3"` for 3."""
    if not isinstance(document, str):
        return document
    try:
        policy = as_object(json.loads(document))
    except ValueError:
        return document
    if policy is None:
        return document
    count = policy.get("maxReceiveCount")
    if isinstance(count, str) and count.isdecimal():
        policy["maxReceiveCount"] = int(count)
    return canonical_json(json.dumps(policy))


# Input, attribute of the API, how it differs from a plain text.
_ATTRIBUTES: dict[str, tuple[str, Property]] = {
    "visibilityTimeoutSeconds": ("VisibilityTimeout", Property(default=30)),
    "messageRetentionSeconds": ("MessageRetentionPeriod", Property(default=345_600)),
    "maxMessageSize": ("MaximumMessageSize", Property(default=1_048_576)),
    "delaySeconds": ("DelaySeconds", Property(default=0)),
    "receiveWaitTimeSeconds": ("ReceiveMessageWaitTimeSeconds", Property(default=0)),
    "policy": ("Policy", Property(document=True, shared=True, local_gap=_POLICY_NOT_ENFORCED)),
    "redrivePolicy": ("RedrivePolicy", Property(document=True, shared=True, normal=redrive)),
    "redriveAllowPolicy": (
        "RedriveAllowPolicy",
        Property(document=True, shared=True, local_gap="stored; any queue may redrive to any other"),
    ),
    "fifoQueue": ("FifoQueue", Property(default=False, replaces=True)),
    "contentBasedDeduplication": ("ContentBasedDeduplication", Property(default=False)),
    "deduplicationScope": ("DeduplicationScope", Property(shared=True)),
    "fifoThroughputLimit": ("FifoThroughputLimit", Property(shared=True, local_gap="stored; there is no limit")),
    "kmsMasterKeyId": ("KmsMasterKeyId", Property(local_gap=_NOT_ENCRYPTED)),
    "kmsDataKeyReusePeriodSeconds": ("KmsDataKeyReusePeriodSeconds", Property(default=300, local_gap=_NOT_ENCRYPTED)),
    "sqsManagedSseEnabled": ("SqsManagedSseEnabled", Property(shared=True, local_gap=_NOT_ENCRYPTED)),
}


def _to_attribute(value: Any) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _from_attribute(text: str) -> Any:
    if text in ("true", "false"):
        return text == "true"
    return int(text) if text.isdecimal() else text


def _create(call: Call, inputs: Props) -> str:
    attributes = {
        attribute: _to_attribute(inputs[name])
        for name, (attribute, _) in _ATTRIBUTES.items()
        if inputs.get(name) is not None and not (name == "fifoQueue" and not inputs[name])
    }
    created = call.client("sqs").create_queue(QueueName=inputs["name"], Attributes=attributes, tags=inputs["tags"])
    return str(created["QueueUrl"])


def _locate(call: Call, inputs: Props) -> str:
    return str(call.client("sqs").get_queue_url(QueueName=inputs["name"])["QueueUrl"])


def _observe(call: Call, queue_url: str, _inputs: Props) -> Props | None:
    sqs = call.client("sqs")
    found = sqs.get_queue_attributes(QueueUrl=queue_url, AttributeNames=["All"])["Attributes"]
    arn = found["QueueArn"]
    return {
        "name": arn.rsplit(":", 1)[1],
        "arn": arn,
        "url": queue_url,
        **{name: _from_attribute(found.get(attribute) or "") or None for name, (attribute, _) in _ATTRIBUTES.items()},
        **{
            name: int(found[attribute])
            for name, (attribute, prop) in _ATTRIBUTES.items()
            if isinstance(prop.default, int) and not isinstance(prop.default, bool) and attribute in found
        },
        "tags": sqs.list_queue_tags(QueueUrl=queue_url).get("Tags", {}),
    }


def _update(call: Call, queue_url: str, old: Props, new: Props) -> None:
    sqs = call.client("sqs")
    attributes: dict[str, str] = {}
    for name in changed(old, new, QUEUE) & _ATTRIBUTES.keys():
        attribute, prop = _ATTRIBUTES[name]
        attributes[attribute] = _to_attribute(new.get(name, prop.default))
    if attributes:
        sqs.set_queue_attributes(QueueUrl=queue_url, Attributes=attributes)
    sync_tags(
        old.get("tags"),
        new.get("tags"),
        put=lambda tags: sqs.tag_queue(QueueUrl=queue_url, Tags=tags),
        remove=lambda keys: sqs.untag_queue(QueueUrl=queue_url, TagKeys=keys),
    )


def _delete(call: Call, queue_url: str, _state: Props) -> None:
    call.client("sqs").delete_queue(QueueUrl=queue_url)


QUEUE = Row(
    resource_type="aws:sqs/queue:Queue",
    properties={
        "name": Property(replaces=True),
        **{name: prop for name, (_, prop) in _ATTRIBUTES.items()},
    },
    naming=Naming(max_length=80, suffix=lambda inputs: ".fifo" if inputs.get("fifoQueue") else ""),
    create=_create,
    observe=_observe,
    update=_update,
    delete=_delete,
    exists=frozenset({"QueueAlreadyExists", "QueueNameExists"}),
    locate=_locate,
    tags=True,
    local_gap="no metric of a queue is published; the number of messages in flight is not limited",
)


def _attribute_row(resource_type: str, name: str) -> Row:
    """A resource that is one attribute of a queue; its id is the queue's URL."""
    attribute, prop = _ATTRIBUTES[name]
    stated = Property(document=True, normal=prop.normal, local_gap=prop.local_gap)

    def put(call: Call, queue_url: str, value: str) -> None:
        call.client("sqs").set_queue_attributes(QueueUrl=queue_url, Attributes={attribute: value})

    def create(call: Call, inputs: Props) -> str:
        put(call, inputs["queueUrl"], inputs[name])
        return str(inputs["queueUrl"])

    def observe(call: Call, queue_url: str, _inputs: Props) -> Props | None:
        found = call.client("sqs").get_queue_attributes(QueueUrl=queue_url, AttributeNames=[attribute])
        value = found.get("Attributes", {}).get(attribute)
        return {"queueUrl": queue_url, name: value} if value else None

    return Row(
        resource_type=resource_type,
        properties={"queueUrl": Property(replaces=True), name: stated},
        create=create,
        observe=observe,
        update=lambda call, queue_url, _old, new: put(call, queue_url, new[name]),
        delete=lambda call, queue_url, _state: put(call, queue_url, ""),
    )


ROWS = (
    QUEUE,
    _attribute_row("aws:sqs/queuePolicy:QueuePolicy", "policy"),
    _attribute_row("aws:sqs/redrivePolicy:RedrivePolicy", "redrivePolicy"),
    _attribute_row("aws:sqs/redriveAllowPolicy:RedriveAllowPolicy", "redriveAllowPolicy"),
)
