"""Data sources: what the program may ask AWS, answered from the emulator or, offline, by what any account has."""

from collections.abc import Callable
from typing import Final

from local.aws.table import Call
from local.aws.values import Props, as_list

OFFLINE_ACCOUNT: Final = "123456789012"
_OFFLINE_VPC: Final = "vpc-0123456789abcdef0"
_OFFLINE_SUBNETS: Final = ("subnet-0123456789abcdef0", "subnet-0123456789abcdef1", "subnet-0123456789abcdef2")

Answer = Callable[[Call | None, str, Props], Props]


def _caller_identity(call: Call | None, _region: str, _arguments: Props) -> Props:
    account = OFFLINE_ACCOUNT if call is None else call.account_id
    return {"accountId": account, "arn": f"arn:aws:iam::{account}:root", "id": account, "userId": account}


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


ANSWERS: Final[dict[str, Answer]] = {
    "aws:ec2/getSubnets:getSubnets": _subnets,
    "aws:ec2/getVpc:getVpc": _vpc,
    "aws:index/getCallerIdentity:getCallerIdentity": _caller_identity,
}
"""Data sources by token."""
