"""Topics, their policies and subscriptions."""

from typing import Any

from local.aws.table import Call, Naming, Property, Row, changed, ignored, sync_tags, tag_list, tag_map
from local.aws.values import Props

_NOT_ENFORCED = "stored; the emulator lets everyone publish"

# Input of the engine, attribute of the API, property.
_TOPIC: dict[str, tuple[str, Property]] = {
    "displayName": ("DisplayName", Property()),
    "policy": ("Policy", Property(document=True, shared=True, local_gap=_NOT_ENFORCED)),
    "deliveryPolicy": ("DeliveryPolicy", Property(document=True, local_gap="stored; not applied")),
    "kmsMasterKeyId": ("KmsMasterKeyId", Property(local_gap="stored; the emulator encrypts nothing")),
    "fifoTopic": ("FifoTopic", Property(default=False, replaces=True)),
    "contentBasedDeduplication": ("ContentBasedDeduplication", Property(default=False)),
}

_SUBSCRIPTION: dict[str, tuple[str, Property]] = {
    "rawMessageDelivery": ("RawMessageDelivery", Property(default=False)),
    "filterPolicy": ("FilterPolicy", Property(document=True)),
    "filterPolicyScope": ("FilterPolicyScope", Property(shared=True)),
    "redrivePolicy": ("RedrivePolicy", Property(document=True, local_gap="stored; not applied")),
}


def _text(value: Any) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _value(text: Any) -> Any:
    return text == "true" if text in ("true", "false") else text or None


def _attributes(inputs: Props, fields: dict[str, tuple[str, Property]]) -> dict[str, str]:
    return {
        field: _text(inputs[name]) for name, (field, _) in fields.items() if inputs.get(name) not in (None, "", False)
    }


def _create_topic(call: Call, inputs: Props) -> str:
    created = call.client("sns").create_topic(
        Name=inputs["name"], Attributes=_attributes(inputs, _TOPIC), Tags=tag_list(inputs["tags"])
    )
    return str(created["TopicArn"])


def _observe_topic(call: Call, arn: str, inputs: Props) -> Props | None:
    sns = call.client("sns")
    found = sns.get_topic_attributes(TopicArn=arn)["Attributes"]
    name = arn.rsplit(":", 1)[1]
    values = {key: _value(found.get(field)) for key, (field, _) in _TOPIC.items()}
    if inputs.get("displayName") is None and values["displayName"] == name:
        values["displayName"] = None  # the emulator shows the name of a topic that has no display name
    return {
        **values,
        "name": name,
        "arn": arn,
        "owner": found["Owner"],
        "tags": tag_map(sns.list_tags_for_resource(ResourceArn=arn)["Tags"]),
    }


def _update_topic(call: Call, arn: str, old: Props, new: Props) -> None:
    sns = call.client("sns")
    for name in sorted(changed(old, new, TOPIC) & _TOPIC.keys()):
        field, prop = _TOPIC[name]
        sns.set_topic_attributes(TopicArn=arn, AttributeName=field, AttributeValue=_text(new.get(name, prop.default)))
    sync_tags(
        old.get("tags"),
        new.get("tags"),
        put=lambda tags: sns.tag_resource(ResourceArn=arn, Tags=tag_list(tags)),
        remove=lambda keys: sns.untag_resource(ResourceArn=arn, TagKeys=keys),
    )


def _delete_topic(call: Call, arn: str, _state: Props) -> None:
    call.client("sns").delete_topic(TopicArn=arn)


TOPIC = Row(
    resource_type="aws:sns/topic:Topic",
    properties={"name": Property(replaces=True), **{name: prop for name, (_, prop) in _TOPIC.items()}},
    naming=Naming(max_length=256, suffix=lambda inputs: ".fifo" if inputs.get("fifoTopic") else ""),
    create=_create_topic,
    observe=_observe_topic,
    update=_update_topic,
    delete=_delete_topic,
    tags=True,
    local_gap="no e-mail, text message or push notification is sent",
)


def _create_policy(call: Call, inputs: Props) -> str:
    call.client("sns").set_topic_attributes(
        TopicArn=inputs["arn"], AttributeName="Policy", AttributeValue=inputs["policy"]
    )
    return str(inputs["arn"])


def _observe_policy(call: Call, arn: str, _inputs: Props) -> Props | None:
    found = call.client("sns").get_topic_attributes(TopicArn=arn)["Attributes"]
    return {"arn": arn, "owner": found["Owner"], "policy": found["Policy"]} if found.get("Policy") else None


def _update_policy(call: Call, _arn: str, _old: Props, new: Props) -> None:
    _create_policy(call, new)


def _delete_policy(call: Call, arn: str, _state: Props) -> None:
    call.client("sns").set_topic_attributes(TopicArn=arn, AttributeName="Policy", AttributeValue="")


TOPIC_POLICY = Row(
    resource_type="aws:sns/topicPolicy:TopicPolicy",
    properties={"arn": Property(replaces=True), "policy": Property(document=True, local_gap=_NOT_ENFORCED)},
    create=_create_policy,
    observe=_observe_policy,
    update=_update_policy,
    delete=_delete_policy,
)


def _subscribe(call: Call, inputs: Props) -> str:
    created = call.client("sns").subscribe(
        TopicArn=inputs["topic"],
        Protocol=inputs["protocol"],
        Endpoint=inputs["endpoint"],
        Attributes=_attributes(inputs, _SUBSCRIPTION),
        ReturnSubscriptionArn=True,
    )
    return str(created["SubscriptionArn"])


def _observe_subscription(call: Call, arn: str, _inputs: Props) -> Props | None:
    found = call.client("sns").get_subscription_attributes(SubscriptionArn=arn)["Attributes"]
    return {
        "arn": arn,
        "topic": found["TopicArn"],
        "protocol": found["Protocol"],
        "endpoint": found["Endpoint"],
        "ownerId": found.get("Owner"),
        **{key: _value(found.get(field)) for key, (field, _) in _SUBSCRIPTION.items()},
    }


def _update_subscription(call: Call, arn: str, old: Props, new: Props) -> None:
    for name in sorted(changed(old, new, SUBSCRIPTION) & _SUBSCRIPTION.keys()):
        field, prop = _SUBSCRIPTION[name]
        call.client("sns").set_subscription_attributes(
            SubscriptionArn=arn, AttributeName=field, AttributeValue=_text(new.get(name, prop.default))
        )


def _unsubscribe(call: Call, arn: str, _state: Props) -> None:
    call.client("sns").unsubscribe(SubscriptionArn=arn)


SUBSCRIPTION = Row(
    resource_type="aws:sns/topicSubscription:TopicSubscription",
    properties={
        "topic": Property(replaces=True),
        "protocol": Property(replaces=True),
        "endpoint": Property(replaces=True),
        **{name: prop for name, (_, prop) in _SUBSCRIPTION.items()},
        "confirmationTimeoutInMinutes": ignored("subscriptions are confirmed at once", default=1),
        "endpointAutoConfirms": ignored("subscriptions are confirmed at once", default=False),
    },
    create=_subscribe,
    observe=_observe_subscription,
    update=_update_subscription,
    delete=_unsubscribe,
)

ROWS = (TOPIC, TOPIC_POLICY, SUBSCRIPTION)
