"""Roles and policies."""

from local.aws.table import Call, Naming, Property, Row, changed, sync_tags, tag_list, tag_map
from local.aws.values import Props, compact_json

_EXISTS = frozenset({"EntityAlreadyExists"})
_NOT_ENFORCED = "stored; the emulator allows every call"


def _create_role(call: Call, inputs: Props) -> str:
    request: Props = {
        "RoleName": inputs["name"],
        "AssumeRolePolicyDocument": inputs["assumeRolePolicy"],
        "Path": inputs.get("path", "/"),
        "MaxSessionDuration": inputs.get("maxSessionDuration", 3600),
        "Tags": tag_list(inputs["tags"]),
    }
    if inputs.get("description"):
        request["Description"] = inputs["description"]
    if inputs.get("permissionsBoundary"):
        request["PermissionsBoundary"] = inputs["permissionsBoundary"]
    call.client("iam").create_role(**request)
    return str(inputs["name"])


def _observe_role(call: Call, name: str, _inputs: Props) -> Props | None:
    role = call.client("iam").get_role(RoleName=name)["Role"]
    return {
        "name": role["RoleName"],
        "arn": role["Arn"],
        "uniqueId": role["RoleId"],
        "path": role["Path"],
        "assumeRolePolicy": compact_json(role["AssumeRolePolicyDocument"]),
        "description": role.get("Description") or None,
        "maxSessionDuration": role.get("MaxSessionDuration", 3600),
        "permissionsBoundary": role.get("PermissionsBoundary", {}).get("PermissionsBoundaryArn"),
        "tags": tag_map(role.get("Tags")),
    }


def _update_role(call: Call, name: str, old: Props, new: Props) -> None:
    iam = call.client("iam")
    names = changed(old, new, ROLE)
    if "assumeRolePolicy" in names:
        iam.update_assume_role_policy(RoleName=name, PolicyDocument=new["assumeRolePolicy"])
    if "description" in names:
        # UpdateRole of the emulator keeps the old description when the new one is empty; this call does not.
        iam.update_role_description(RoleName=name, Description=new.get("description", ""))
    if "maxSessionDuration" in names:
        iam.update_role(RoleName=name, MaxSessionDuration=new.get("maxSessionDuration", 3600))
    if "permissionsBoundary" in names and new.get("permissionsBoundary"):
        iam.put_role_permissions_boundary(RoleName=name, PermissionsBoundary=new["permissionsBoundary"])
    elif "permissionsBoundary" in names:
        iam.delete_role_permissions_boundary(RoleName=name)
    sync_tags(
        old.get("tags"),
        new.get("tags"),
        put=lambda tags: iam.tag_role(RoleName=name, Tags=tag_list(tags)),
        remove=lambda keys: iam.untag_role(RoleName=name, TagKeys=keys),
    )


def _delete_role(call: Call, name: str, _state: Props) -> None:
    iam = call.client("iam")
    # What an `up` that ended half-way attached is in no state, and would keep the role alive.
    for policy in iam.list_role_policies(RoleName=name)["PolicyNames"]:
        iam.delete_role_policy(RoleName=name, PolicyName=policy)
    for policy in iam.list_attached_role_policies(RoleName=name)["AttachedPolicies"]:
        iam.detach_role_policy(RoleName=name, PolicyArn=policy["PolicyArn"])
    iam.delete_role(RoleName=name)


ROLE = Row(
    resource_type="aws:iam/role:Role",
    properties={
        "name": Property(replaces=True),
        "assumeRolePolicy": Property(document=True, local_gap=_NOT_ENFORCED),
        "description": Property(),
        "path": Property(default="/", replaces=True),
        "maxSessionDuration": Property(default=3600),
        "permissionsBoundary": Property(local_gap=_NOT_ENFORCED),
        "forceDetachPolicies": Property(default=False, write_only=True),
    },
    naming=Naming(max_length=64),
    create=_create_role,
    observe=_observe_role,
    update=_update_role,
    delete=_delete_role,
    exists=_EXISTS,
    locate=lambda _call, inputs: str(inputs["name"]),
    tags=True,
    regional=False,
)


def _split(resource_id: str) -> tuple[str, str]:
    role, _, name = resource_id.partition(":")
    return role, name


def _put_inline(call: Call, inputs: Props) -> str:
    call.client("iam").put_role_policy(
        RoleName=inputs["role"], PolicyName=inputs["name"], PolicyDocument=inputs["policy"]
    )
    return f"{inputs['role']}:{inputs['name']}"


def _observe_inline(call: Call, resource_id: str, _inputs: Props) -> Props | None:
    role, name = _split(resource_id)
    found = call.client("iam").get_role_policy(RoleName=role, PolicyName=name)
    return {"role": role, "name": name, "policy": compact_json(found["PolicyDocument"])}


def _update_inline(call: Call, _resource_id: str, _old: Props, new: Props) -> None:
    _put_inline(call, new)


def _delete_inline(call: Call, resource_id: str, _state: Props) -> None:
    role, name = _split(resource_id)
    call.client("iam").delete_role_policy(RoleName=role, PolicyName=name)


ROLE_POLICY = Row(
    resource_type="aws:iam/rolePolicy:RolePolicy",
    properties={
        "name": Property(replaces=True),
        "role": Property(replaces=True),
        "policy": Property(document=True, local_gap=_NOT_ENFORCED),
    },
    naming=Naming(max_length=128),
    create=_put_inline,
    observe=_observe_inline,
    update=_update_inline,
    delete=_delete_inline,
    regional=False,
)


ROWS = (ROLE, ROLE_POLICY)
