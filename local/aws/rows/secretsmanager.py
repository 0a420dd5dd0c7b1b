"""Secrets without values: those are written by the command line, never by a program."""

from local.aws.table import Call, Naming, Property, Row, changed, ignored, sync_tags, tag_list, tag_map
from local.aws.values import Props


def _create(call: Call, inputs: Props) -> str:
    request: Props = {"Name": inputs["name"], "Tags": tag_list(inputs["tags"])}
    if inputs.get("description"):
        request["Description"] = inputs["description"]
    if inputs.get("kmsKeyId"):
        request["KmsKeyId"] = inputs["kmsKeyId"]
    return str(call.client("secretsmanager").create_secret(**request)["ARN"])


def _locate(call: Call, inputs: Props) -> str:
    return str(call.client("secretsmanager").describe_secret(SecretId=inputs["name"])["ARN"])


def _observe(call: Call, arn: str, _inputs: Props) -> Props | None:
    found = call.client("secretsmanager").describe_secret(SecretId=arn)
    if found.get("DeletedDate"):
        return None
    return {
        "arn": found["ARN"],
        "name": found["Name"],
        "description": found.get("Description") or None,
        "kmsKeyId": found.get("KmsKeyId"),
        "tags": tag_map(found.get("Tags")),
    }


def _update(call: Call, arn: str, old: Props, new: Props) -> None:
    client = call.client("secretsmanager")
    names = changed(old, new, SECRET)
    request: Props = {}
    if "description" in names:
        request["Description"] = new.get("description", "")
    if "kmsKeyId" in names:
        request["KmsKeyId"] = new.get("kmsKeyId", "")
    if request:
        client.update_secret(SecretId=arn, **request)
    sync_tags(
        old.get("tags"),
        new.get("tags"),
        put=lambda tags: client.tag_resource(SecretId=arn, Tags=tag_list(tags)),
        remove=lambda keys: client.untag_resource(SecretId=arn, TagKeys=keys),
    )


def _delete(call: Call, arn: str, _state: Props) -> None:
    call.client("secretsmanager").delete_secret(SecretId=arn, ForceDeleteWithoutRecovery=True)


SECRET = Row(
    resource_type="aws:secretsmanager/secret:Secret",
    properties={
        "name": Property(replaces=True),
        "description": Property(),
        "kmsKeyId": Property(local_gap="stored; the emulator encrypts nothing"),
        "recoveryWindowInDays": ignored("a deleted secret is gone at once", default=30),
        "forceOverwriteReplicaSecret": ignored("there are no replicas", default=False),
    },
    naming=Naming(max_length=512),
    create=_create,
    observe=_observe,
    update=_update,
    delete=_delete,
    exists=frozenset({"ResourceExistsException"}),
    locate=_locate,
    tags=True,
)


def _never(_call: Call, _inputs: Props) -> str:
    raise AssertionError("a refused type is never created")


def _unchanged(_call: Call, _arn: str, _old: Props, _new: Props) -> None:
    raise AssertionError("a refused type is never updated")


SECRET_VERSION = Row(
    resource_type="aws:secretsmanager/secretVersion:SecretVersion",
    properties={},
    create=_never,
    observe=lambda _call, _arn, _inputs: None,
    update=_unchanged,
    delete=lambda _call, _arn, _state: None,
    refusal="a secret's value never goes through Pulumi; write it with `./sophia secrets set`",
)

ROWS = (SECRET, SECRET_VERSION)
