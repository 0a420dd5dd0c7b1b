"""Roles and policies."""

from typing import Any

from local.aws.table import Call, Naming, Property, Row, changed, sync_tags, tag_list, tag_map
from local.aws.values import Props, compact_json

_EXISTS = frozenset({"EntityAlreadyExists"})
_MAX_POLICY_VERSIONS = 5
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


def _create_policy(call: Call, inputs: Props) -> str:
    request: Props = {
        "PolicyName": inputs["name"],
        "PolicyDocument": inputs["policy"],
        "Path": inputs.get("path", "/"),
        "Tags": tag_list(inputs["tags"]),
    }
    if inputs.get("description"):
        request["Description"] = inputs["description"]
    return str(call.client("iam").create_policy(**request)["Policy"]["Arn"])


def _policy_arn(call: Call, inputs: Props) -> str:
    return f"arn:aws:iam::{call.account_id}:policy{inputs.get('path', '/')}{inputs['name']}"


def _observe_policy(call: Call, arn: str, _inputs: Props) -> Props | None:
    iam = call.client("iam")
    policy = iam.get_policy(PolicyArn=arn)["Policy"]
    version = iam.get_policy_version(PolicyArn=arn, VersionId=policy["DefaultVersionId"])["PolicyVersion"]
    return {
        "name": policy["PolicyName"],
        "arn": arn,
        "policyId": policy["PolicyId"],
        "path": policy["Path"],
        "description": policy.get("Description") or None,
        "policy": compact_json(version["Document"]),
        "tags": tag_map(policy.get("Tags")),
    }


def _update_policy(call: Call, arn: str, old: Props, new: Props) -> None:
    iam = call.client("iam")
    if "policy" in changed(old, new, POLICY):
        versions: list[Any] = iam.list_policy_versions(PolicyArn=arn)["Versions"]
        spare = sorted((v for v in versions if not v["IsDefaultVersion"]), key=lambda v: v["CreateDate"])
        if len(versions) >= _MAX_POLICY_VERSIONS:
            iam.delete_policy_version(PolicyArn=arn, VersionId=spare[0]["VersionId"])
        iam.create_policy_version(PolicyArn=arn, PolicyDocument=new["policy"], SetAsDefault=True)
    sync_tags(
        old.get("tags"),
        new.get("tags"),
        put=lambda tags: iam.tag_policy(PolicyArn=arn, Tags=tag_list(tags)),
        remove=lambda keys: iam.untag_policy(PolicyArn=arn, TagKeys=keys),
    )


def _delete_policy(call: Call, arn: str, _state: Props) -> None:
    iam = call.client("iam")
    for version in iam.list_policy_versions(PolicyArn=arn)["Versions"]:
        if not version["IsDefaultVersion"]:
            iam.delete_policy_version(PolicyArn=arn, VersionId=version["VersionId"])
    iam.delete_policy(PolicyArn=arn)


POLICY = Row(
    resource_type="aws:iam/policy:Policy",
    properties={
        "name": Property(replaces=True),
        "path": Property(default="/", replaces=True),
        "description": Property(replaces=True),
        "policy": Property(document=True, local_gap=_NOT_ENFORCED),
    },
    naming=Naming(max_length=128),
    create=_create_policy,
    observe=_observe_policy,
    update=_update_policy,
    delete=_delete_policy,
    exists=_EXISTS,
    locate=_policy_arn,
    tags=True,
    regional=False,
)


def _attach(call: Call, inputs: Props) -> str:
    call.client("iam").attach_role_policy(RoleName=inputs["role"], PolicyArn=inputs["policyArn"])
    return f"{inputs['role']}/{inputs['policyArn']}"


def _observe_attachment(call: Call, resource_id: str, _inputs: Props) -> Props | None:
    role, _, arn = resource_id.partition("/")
    attached = call.client("iam").list_attached_role_policies(RoleName=role)["AttachedPolicies"]
    found = any(policy["PolicyArn"] == arn for policy in attached)
    return {"role": role, "policyArn": arn} if found else None


def _detach(call: Call, resource_id: str, _state: Props) -> None:
    role, _, arn = resource_id.partition("/")
    call.client("iam").detach_role_policy(RoleName=role, PolicyArn=arn)


def _never_updated(_call: Call, _resource_id: str, _old: Props, _new: Props) -> None:
    """Every input replaces, so there is nothing to change in place."""


ATTACHMENT = Row(
    resource_type="aws:iam/rolePolicyAttachment:RolePolicyAttachment",
    properties={"role": Property(replaces=True), "policyArn": Property(replaces=True, local_gap=_NOT_ENFORCED)},
    create=_attach,
    observe=_observe_attachment,
    update=_never_updated,
    delete=_detach,
    regional=False,
)

ROWS = (ROLE, ROLE_POLICY, POLICY, ATTACHMENT)
