"""Lambda functions and what is set on them."""

import base64
import hashlib
import logging
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final

from local.aws import archives
from local.aws.table import Call, Naming, Property, Row, changed, ignored, sync_tags
from local.aws.values import Props, archive_of_hash, as_object, camel, pascal, without, without_defaults

log = logging.getLogger(__name__)

_PACKAGE_KEY: Final = "package.zip"
_ACTIVE_TIMEOUT_SECONDS = 30.0
_POLL_SECONDS = 0.05
_LOGGING_DEFAULTS = {"logFormat": "Text"}

# Input of the engine, field of the API, property.
_CONFIGURATION: dict[str, tuple[str, Property]] = {
    "role": ("Role", Property(local_gap="stored; the function may call everything the emulator has")),
    "handler": ("Handler", Property()),
    "runtime": ("Runtime", Property(local_gap="the function runs on this machine's Python, whatever the runtime says")),
    "description": ("Description", Property()),
    "timeout": ("Timeout", Property(default=3)),
    "memorySize": ("MemorySize", Property(default=128, local_gap="stored; memory is not limited, nor CPU by it")),
    "environment": (
        "Environment",
        Property(normal=lambda value: without_defaults(value, {}), local_gap="no limit of size"),
    ),
    "ephemeralStorage": ("EphemeralStorage", Property(default={"size": 512}, local_gap="stored; not limited")),
    "tracingConfig": (
        "TracingConfig",
        Property(default={"mode": "PassThrough"}, local_gap="stored; nothing is traced"),
    ),
    "deadLetterConfig": ("DeadLetterConfig", Property(normal=lambda value: without_defaults(value, {}))),
    "loggingConfig": (
        "LoggingConfig",
        Property(
            default={"logFormat": "Text"},
            normal=lambda value: without_defaults(value, _LOGGING_DEFAULTS),
            local_gap="its log group is used; format and levels are stored",
        ),
    ),
    "kmsKeyArn": ("KMSKeyArn", Property(local_gap="stored; the emulator encrypts nothing")),
}


def _configuration(inputs: Props, names: frozenset[str]) -> Props:
    request: Props = {}
    for name in names & _CONFIGURATION.keys():
        field, prop = _CONFIGURATION[name]
        value = inputs.get(name, prop.default)
        if name == "environment":
            # Names of variables keep their spelling, whatever the case of their first letter.
            request[field] = {"Variables": (as_object(value) or {}).get("variables") or {}}
        elif name == "deadLetterConfig":
            request[field] = pascal(value) or {}
        else:
            request[field] = "" if value is None else pascal(value)
    return request


@contextmanager
def _uploaded(call: Call, name: str, archive: Any) -> Generator[Props]:
    """The package where the function's create or update finds it.

    By way of a bucket: in the request itself it would be base64 in JSON, at more than twice the time of both sides.
    """
    content = archives.zip_bytes(archive)
    # us-east-1 must not be sent as LocationConstraint.
    location = {} if call.region == "us-east-1" else {"CreateBucketConfiguration": {"LocationConstraint": call.region}}
    s3 = call.client("s3")
    bucket = f"sophia-package-{hashlib.sha256(name.encode()).hexdigest()[:32]}"
    try:
        s3.create_bucket(Bucket=bucket, **location)
    except s3.exceptions.BucketAlreadyOwnedByYou:
        log.info("using the bucket that an upload cut short left for %s", name)
    try:
        s3.put_object(Bucket=bucket, Key=_PACKAGE_KEY, Body=content)
        yield {"S3Bucket": bucket, "S3Key": _PACKAGE_KEY}
    finally:
        s3.delete_object(Bucket=bucket, Key=_PACKAGE_KEY)
        s3.delete_bucket(Bucket=bucket)


def _create(call: Call, inputs: Props) -> str:
    stated = frozenset(name for name in _CONFIGURATION if inputs.get(name) is not None)
    name = inputs["name"]
    with _uploaded(call, name, inputs.get("code")) as package:
        call.client("lambda").create_function(
            FunctionName=name,
            Code=package,
            Architectures=inputs.get("architectures", ["x86_64"]),
            PackageType=inputs.get("packageType", "Zip"),
            Publish=inputs.get("publish", False),
            Tags=inputs["tags"],
            **_configuration(inputs, stated),
        )
    _wait_until_active(call, name)
    _set_concurrency(call, name, inputs)
    return str(name)


def _set_concurrency(call: Call, name: str, inputs: Props) -> None:
    reserved = inputs.get("reservedConcurrentExecutions", -1)
    if reserved >= 0:
        call.client("lambda").put_function_concurrency(FunctionName=name, ReservedConcurrentExecutions=reserved)
    else:
        call.client("lambda").delete_function_concurrency(FunctionName=name)


def _wait_until_active(call: Call, name: str) -> None:
    deadline = time.monotonic() + _ACTIVE_TIMEOUT_SECONDS
    while True:
        found = call.client("lambda").get_function_configuration(FunctionName=name)
        if found["State"] == "Active" and found["LastUpdateStatus"] == "Successful":
            return
        if found["State"] == "Failed" or found["LastUpdateStatus"] == "Failed" or time.monotonic() > deadline:
            raise RuntimeError(
                f"function {name} did not become active: {found['State']}, {found['LastUpdateStatus']}, "
                f"{found.get('StateReason') or found.get('LastUpdateStatusReason') or 'no reason given'}"
            )
        time.sleep(_POLL_SECONDS)


def _observe(call: Call, name: str, inputs: Props) -> Props | None:
    client = call.client("lambda")
    response = client.get_function(FunctionName=name)
    found = response["Configuration"]
    arn = found["FunctionArn"]
    invoke_arn = f"arn:aws:apigateway:{call.region}:lambda:path/2015-03-31/functions/{arn}/invocations"
    values = {key: camel(found.get(field)) or None for key, (field, _) in _CONFIGURATION.items()}
    values["environment"] = {"variables": variables} if (variables := _variables(found)) else None
    logging = as_object(values["loggingConfig"]) or {}
    if logging.get("logGroup") == f"/aws/lambda/{name}" and "logGroup" not in (
        as_object(inputs.get("loggingConfig")) or {}
    ):
        values["loggingConfig"] = without(logging, ["logGroup"])  # what a function without a stated group has
    if (deployed := inputs.get("codeSha256")) is not None:
        values["code"] = inputs.get("code") if deployed == found["CodeSha256"] else _foreign_code(found["CodeSha256"])
    return {
        **values,
        "name": found["FunctionName"],
        "arn": arn,
        "invokeArn": invoke_arn,
        "qualifiedArn": f"{arn}:{found['Version']}",
        "version": found["Version"],
        "architectures": found.get("Architectures"),
        "packageType": found.get("PackageType"),
        "codeSha256": found["CodeSha256"],
        "sourceCodeSize": found["CodeSize"],
        "reservedConcurrentExecutions": response.get("Concurrency", {}).get("ReservedConcurrentExecutions", -1),
        "tags": response.get("Tags", {}),
    }


def _foreign_code(digest: str) -> Props:
    """Stands for code that no program declared: an archive by its hash alone, as the engine itself keeps them."""
    return archive_of_hash(base64.b64decode(digest).hex())


def _variables(found: Any) -> Props:
    return as_object((as_object(found.get("Environment")) or {}).get("Variables")) or {}


def _update(call: Call, name: str, old: Props, new: Props) -> None:
    client = call.client("lambda")
    names = changed(old, new, FUNCTION)
    if names & {"code", "architectures", "sourceCodeHash"}:
        with _uploaded(call, name, new.get("code")) as package:
            client.update_function_code(
                FunctionName=name,
                Architectures=new.get("architectures", ["x86_64"]),
                Publish=new.get("publish", False),
                **package,
            )
        _wait_until_active(call, name)
    if configuration := _configuration(new, names):
        client.update_function_configuration(FunctionName=name, **configuration)
        _wait_until_active(call, name)
    if "reservedConcurrentExecutions" in names:
        _set_concurrency(call, name, new)
    sync_tags(
        old.get("tags"),
        new.get("tags"),
        put=lambda tags: client.tag_resource(Resource=old["arn"], Tags=tags),
        remove=lambda keys: client.untag_resource(Resource=old["arn"], TagKeys=keys),
    )


def _delete(call: Call, name: str, _state: Props) -> None:
    call.client("lambda").delete_function(FunctionName=name)


FUNCTION = Row(
    resource_type="aws:lambda/function:Function",
    properties={
        "name": Property(replaces=True),
        "code": Property(),
        "sourceCodeHash": Property(write_only=True),
        **{name: prop for name, (_, prop) in _CONFIGURATION.items()},
        "architectures": Property(
            default=["x86_64"], local_gap="stored; the function runs as a process of this machine's own architecture"
        ),
        "packageType": Property(default="Zip", replaces=True),
        "publish": Property(default=False, write_only=True),
        "reservedConcurrentExecutions": Property(default=-1),
        "vpcConfig": ignored("functions have this machine's network, and no security group filters it"),
        "layers": ignored("layers are not fetched"),
    },
    naming=Naming(max_length=64),
    create=_create,
    observe=_observe,
    update=_update,
    delete=_delete,
    exists=frozenset({"ResourceConflictException"}),
    locate=lambda _call, inputs: str(inputs["name"]),
    tags=True,
    recomputed=("codeSha256", "sourceCodeSize", "qualifiedArn", "version"),
)


def function_name(value: Any) -> Any:
    """A function's name from its name, ARN or partial ARN; a qualifier stays."""
    if not isinstance(value, str) or ":" not in value:
        return value
    _, _, tail = value.rpartition("function:")
    return tail


def _put_recursion(call: Call, inputs: Props) -> str:
    call.client("lambda").put_function_recursion_config(
        FunctionName=inputs["functionName"], RecursiveLoop=inputs["recursiveLoop"]
    )
    return str(inputs["functionName"])


def _observe_recursion(call: Call, name: str, _inputs: Props) -> Props | None:
    found = call.client("lambda").get_function_recursion_config(FunctionName=name)
    return {"functionName": name, "recursiveLoop": found["RecursiveLoop"]}


def _update_recursion(call: Call, _name: str, _old: Props, new: Props) -> None:
    _put_recursion(call, new)


def _reset_recursion(call: Call, name: str, _state: Props) -> None:
    call.client("lambda").put_function_recursion_config(FunctionName=name, RecursiveLoop="Terminate")


RECURSION = Row(
    resource_type="aws:lambda/functionRecursionConfig:FunctionRecursionConfig",
    properties={"functionName": Property(replaces=True), "recursiveLoop": Property()},
    create=_put_recursion,
    observe=_observe_recursion,
    update=_update_recursion,
    delete=_reset_recursion,
)

ROWS = (FUNCTION, RECURSION)
