"""Data sources: what the program may ask AWS, answered from the emulator or, offline, by what any account has."""

from collections.abc import Callable
from typing import Any, Final

from local.aws.table import Call
from local.aws.values import Props, as_list, as_object, compact_json

OFFLINE_ACCOUNT: Final = "123456789012"
_OFFLINE_VPC: Final = "vpc-0123456789abcdef0"
_OFFLINE_SUBNETS: Final = ("subnet-0123456789abcdef0", "subnet-0123456789abcdef1", "subnet-0123456789abcdef2")

Answer = Callable[[Call | None, str, Props], Props]


def _caller_identity(call: Call | None, _region: str, _arguments: Props) -> Props:
    account = OFFLINE_ACCOUNT if call is None else call.account_id
    return {"accountId": account, "arn": f"arn:aws:iam::{account}:root", "id": account, "userId": account}


def _region(_call: Call | None, region: str, _arguments: Props) -> Props:
    return {
        "id": region,
        "name": region,
        "region": region,
        "description": region,
        "endpoint": f"ec2.{region}.amazonaws.com",
    }


def _partition(_call: Call | None, _region: str, _arguments: Props) -> Props:
    return {"id": "aws", "partition": "aws", "dnsSuffix": "amazonaws.com", "reverseDnsPrefix": "com.amazonaws"}


def _availability_zones(_call: Call | None, region: str, _arguments: Props) -> Props:
    names = [f"{region}{letter}" for letter in "abc"]
    short = "".join(part[:1] if part.isalpha() else part for part in region.split("-"))
    return {
        "id": region,
        "names": names,
        "zoneIds": [f"{short}-az{number}" for number in (1, 2, 3)],
        "groupNames": [region],
        "region": region,
    }


def _vpc(call: Call | None, region: str, arguments: Props) -> Props:
    if call is None:
        return {
            "id": arguments.get("id") or _OFFLINE_VPC,
            "arn": f"arn:aws:ec2:{region}:{OFFLINE_ACCOUNT}:vpc/{_OFFLINE_VPC}",
            "cidrBlock": "172.31.0.0/16",
            "default": bool(arguments.get("default", True)),
        }
    vpcs = call.client("ec2").describe_vpcs(**_selection(arguments, "VpcIds"))["Vpcs"]
    matching = [vpc for vpc in vpcs if arguments.get("default") in (None, vpc.get("IsDefault"))]
    if len(matching) != 1:
        raise LookupError(f"{len(matching)} VPCs match, where one is asked for")
    vpc = matching[0]
    return {"id": vpc["VpcId"], "cidrBlock": vpc["CidrBlock"], "default": vpc.get("IsDefault", False)}


def _subnets(call: Call | None, region: str, arguments: Props) -> Props:
    if call is None:
        return {"id": region, "ids": list(_OFFLINE_SUBNETS)}
    found = call.client("ec2").describe_subnets(**_selection(arguments))["Subnets"]
    return {"id": region, "ids": [subnet["SubnetId"] for subnet in found]}


def _selection(arguments: Props, ids: str = "") -> Props:
    request: Props = {}
    if filters := as_list(arguments.get("filters")):
        request["Filters"] = [{"Name": item["name"], "Values": item["values"]} for item in filters]
    if ids and arguments.get("id"):
        request[ids] = [arguments["id"]]
    return request


def _policy_document(_call: Call | None, _region: str, arguments: Props) -> Props:
    document = compact_json(
        {
            "Version": arguments.get("version") or "2012-10-17",
            "Statement": [_statement(as_object(item) or {}) for item in as_list(arguments.get("statements"))],
        }
    )
    return {"id": str(len(document)), "json": document, "minifiedJson": document}


def _statement(stated: Props) -> Props:
    statement: Props = {"Effect": stated.get("effect") or "Allow"}
    if stated.get("sid"):
        statement["Sid"] = stated["sid"]
    for key, source in (
        ("Action", "actions"),
        ("NotAction", "notActions"),
        ("Resource", "resources"),
        ("NotResource", "notResources"),
    ):
        if values := as_list(stated.get(source)):
            statement[key] = _one_or_many(values)
    for key, source in (("Principal", "principals"), ("NotPrincipal", "notPrincipals")):
        if principals := as_list(stated.get(source)):
            statement[key] = _principals(principals)
    conditions: Props = {}
    for condition in as_list(stated.get("conditions")):
        conditions.setdefault(condition["test"], {})[condition["variable"]] = _one_or_many(condition["values"])
    if conditions:
        statement["Condition"] = conditions
    return statement


def _principals(principals: list[Any]) -> Any:
    if any(item["type"] == "*" for item in principals):
        return "*"
    merged: dict[str, list[str]] = {}
    for item in principals:
        merged.setdefault(item["type"], []).extend(item["identifiers"])
    return {kind: _one_or_many(identifiers) for kind, identifiers in merged.items()}


def _one_or_many(values: list[Any]) -> Any:
    return values[0] if len(values) == 1 else sorted(values)


ANSWERS: Final[dict[str, Answer]] = {
    "aws:ec2/getSubnets:getSubnets": _subnets,
    "aws:ec2/getVpc:getVpc": _vpc,
    "aws:iam/getPolicyDocument:getPolicyDocument": _policy_document,
    "aws:index/getAvailabilityZones:getAvailabilityZones": _availability_zones,
    "aws:index/getCallerIdentity:getCallerIdentity": _caller_identity,
    "aws:index/getPartition:getPartition": _partition,
    "aws:index/getRegion:getRegion": _region,
}
"""Data sources by token."""
