"""Customer keys and their aliases."""

from local.aws.table import Call, Naming, Property, Row, changed, ignored, sync_tags, tag_list, tag_map
from local.aws.values import Props

_UNUSED = "stored; nothing is encrypted with it"


def _create(call: Call, inputs: Props) -> str:
    kms = call.client("kms")
    request: Props = {
        "KeyUsage": inputs.get("keyUsage", "ENCRYPT_DECRYPT"),
        "MultiRegion": inputs.get("multiRegion", False),
        "Tags": tag_list(inputs["tags"], "TagKey", "TagValue"),
    }
    if inputs.get("description"):
        request["Description"] = inputs["description"]
    if inputs.get("policy"):
        request["Policy"] = inputs["policy"]
    key_id = str(kms.create_key(**request)["KeyMetadata"]["KeyId"])
    if inputs.get("enableKeyRotation"):
        kms.enable_key_rotation(KeyId=key_id)
    if inputs.get("isEnabled") is False:
        kms.disable_key(KeyId=key_id)
    return key_id


def _observe(call: Call, key_id: str, _inputs: Props) -> Props | None:
    kms = call.client("kms")
    found = kms.describe_key(KeyId=key_id)["KeyMetadata"]
    if found["KeyState"] == "PendingDeletion":
        return None
    return {
        "keyId": found["KeyId"],
        "arn": found["Arn"],
        "description": found.get("Description") or None,
        "keyUsage": found["KeyUsage"],
        "multiRegion": found.get("MultiRegion", False),
        "isEnabled": found["Enabled"],
        "enableKeyRotation": kms.get_key_rotation_status(KeyId=key_id)["KeyRotationEnabled"],
        "policy": kms.get_key_policy(KeyId=key_id, PolicyName="default")["Policy"],
        "tags": tag_map(kms.list_resource_tags(KeyId=key_id)["Tags"], "TagKey", "TagValue"),
    }


def _update(call: Call, key_id: str, old: Props, new: Props) -> None:
    kms = call.client("kms")
    names = changed(old, new, KEY)
    if "isEnabled" in names:
        (kms.enable_key if new.get("isEnabled", True) else kms.disable_key)(KeyId=key_id)
    if "description" in names:
        kms.update_key_description(KeyId=key_id, Description=new.get("description", ""))
    if "enableKeyRotation" in names:
        rotate = new.get("enableKeyRotation", False)
        (kms.enable_key_rotation if rotate else kms.disable_key_rotation)(KeyId=key_id)
    if "policy" in names and new.get("policy"):
        kms.put_key_policy(KeyId=key_id, PolicyName="default", Policy=new["policy"])
    sync_tags(
        old.get("tags"),
        new.get("tags"),
        put=lambda tags: kms.tag_resource(KeyId=key_id, Tags=tag_list(tags, "TagKey", "TagValue")),
        remove=lambda keys: kms.untag_resource(KeyId=key_id, TagKeys=keys),
    )


def _delete(call: Call, key_id: str, state: Props) -> None:
    call.client("kms").schedule_key_deletion(KeyId=key_id, PendingWindowInDays=state.get("deletionWindowInDays", 30))


KEY = Row(
    resource_type="aws:kms/key:Key",
    properties={
        "description": Property(),
        "keyUsage": Property(default="ENCRYPT_DECRYPT", replaces=True),
        "multiRegion": Property(default=False, replaces=True),
        "isEnabled": Property(default=True),
        "enableKeyRotation": Property(default=False, local_gap="stored; no key is rotated"),
        "policy": Property(document=True, shared=True, local_gap="stored; not enforced"),
        "deletionWindowInDays": Property(default=30, write_only=True),
        "bypassPolicyLockoutSafetyCheck": ignored("there is no such check", default=False),
    },
    create=_create,
    observe=_observe,
    update=_update,
    delete=_delete,
    tags=True,
    local_gap="other services never use the key",
)


def _create_alias(call: Call, inputs: Props) -> str:
    call.client("kms").create_alias(AliasName=inputs["name"], TargetKeyId=inputs["targetKeyId"])
    return str(inputs["name"])


def _observe_alias(call: Call, name: str, inputs: Props) -> Props | None:
    kms = call.client("kms")
    for alias in kms.list_aliases()["Aliases"]:
        if alias["AliasName"] == name:
            key = kms.describe_key(KeyId=alias["TargetKeyId"])["KeyMetadata"]
            stated = inputs.get("targetKeyId")
            target = stated if stated in (key["KeyId"], key["Arn"]) else key["KeyId"]
            return {"name": name, "arn": alias["AliasArn"], "targetKeyId": target, "targetKeyArn": key["Arn"]}
    return None


def _update_alias(call: Call, name: str, _old: Props, new: Props) -> None:
    call.client("kms").update_alias(AliasName=name, TargetKeyId=new["targetKeyId"])


def _delete_alias(call: Call, name: str, _state: Props) -> None:
    call.client("kms").delete_alias(AliasName=name)


ALIAS = Row(
    resource_type="aws:kms/alias:Alias",
    properties={"name": Property(replaces=True), "targetKeyId": Property(local_gap=_UNUSED)},
    naming=Naming(max_length=256, prefix="alias/"),
    create=_create_alias,
    observe=_observe_alias,
    update=_update_alias,
    delete=_delete_alias,
    exists=frozenset({"AlreadyExistsException"}),
    locate=lambda _call, inputs: str(inputs["name"]),
)

ROWS = (KEY, ALIAS)
