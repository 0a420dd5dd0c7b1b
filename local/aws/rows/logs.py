"""Log groups."""

from local.aws.table import Call, Naming, Property, Row, changed, ignored, sync_tags
from local.aws.values import Props


def _create(call: Call, inputs: Props) -> str:
    request: Props = {"logGroupName": inputs["name"], "tags": inputs["tags"]}
    if inputs.get("logGroupClass"):
        request["logGroupClass"] = inputs["logGroupClass"]
    if inputs.get("kmsKeyId"):
        request["kmsKeyId"] = inputs["kmsKeyId"]
    call.client("logs").create_log_group(**request)
    _set_retention(call, inputs)
    return str(inputs["name"])


def _set_retention(call: Call, inputs: Props) -> None:
    logs = call.client("logs")
    if days := inputs.get("retentionInDays"):
        logs.put_retention_policy(logGroupName=inputs["name"], retentionInDays=days)
    else:
        logs.delete_retention_policy(logGroupName=inputs["name"])


def _observe(call: Call, name: str, _inputs: Props) -> Props | None:
    logs = call.client("logs")
    groups = logs.describe_log_groups(logGroupNamePrefix=name)["logGroups"]
    for group in groups:
        if group["logGroupName"] == name:
            arn = group["arn"].removesuffix(":*")
            return {
                "name": name,
                "arn": arn,
                "retentionInDays": group.get("retentionInDays", 0),
                "logGroupClass": group.get("logGroupClass"),
                "tags": logs.list_tags_for_resource(resourceArn=arn).get("tags", {}),
            }
    return None


def _update(call: Call, _name: str, old: Props, new: Props) -> None:
    logs = call.client("logs")
    if "retentionInDays" in changed(old, new, LOG_GROUP):
        _set_retention(call, new)
    arn = old["arn"]
    sync_tags(
        old.get("tags"),
        new.get("tags"),
        put=lambda tags: logs.tag_resource(resourceArn=arn, tags=tags),
        remove=lambda keys: logs.untag_resource(resourceArn=arn, tagKeys=keys),
    )


def _delete(call: Call, name: str, _state: Props) -> None:
    call.client("logs").delete_log_group(logGroupName=name)


LOG_GROUP = Row(
    resource_type="aws:cloudwatch/logGroup:LogGroup",
    properties={
        "name": Property(replaces=True),
        "retentionInDays": Property(default=0, local_gap="stored; nothing expires before the stage goes down"),
        "logGroupClass": Property(default="STANDARD", replaces=True),
        "kmsKeyId": Property(write_only=True, local_gap="sent; the emulator encrypts nothing"),
        "skipDestroy": ignored("log groups always go with the stage", default=False),
    },
    naming=Naming(max_length=512),
    create=_create,
    observe=_observe,
    update=_update,
    delete=_delete,
    exists=frozenset({"ResourceAlreadyExistsException"}),
    locate=lambda _call, inputs: str(inputs["name"]),
    tags=True,
)


ROWS = (LOG_GROUP,)
