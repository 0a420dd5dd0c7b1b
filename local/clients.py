"""AWS clients of the emulator; boto3 is imported when the first one is made."""

from typing import TYPE_CHECKING, TypedDict

from local.emulator import CREDENTIALS, REGION

if TYPE_CHECKING:
    from types_boto3_logs import CloudWatchLogsClient
    from types_boto3_secretsmanager import SecretsManagerClient
    from types_boto3_sqs import SQSClient


class _Arguments(TypedDict):
    endpoint_url: str
    region_name: str
    aws_access_key_id: str
    aws_secret_access_key: str


def _arguments(endpoint_url: str) -> _Arguments:
    return {
        "endpoint_url": endpoint_url,
        "region_name": REGION,
        "aws_access_key_id": CREDENTIALS["AWS_ACCESS_KEY_ID"],
        "aws_secret_access_key": CREDENTIALS["AWS_SECRET_ACCESS_KEY"],
    }


def sqs(endpoint_url: str) -> "SQSClient":
    import boto3

    return boto3.client("sqs", **_arguments(endpoint_url))  # pyright: ignore[reportUnknownMemberType]


def secrets_manager(endpoint_url: str) -> "SecretsManagerClient":
    import boto3

    return boto3.client("secretsmanager", **_arguments(endpoint_url))  # pyright: ignore[reportUnknownMemberType]


def logs(endpoint_url: str) -> "CloudWatchLogsClient":
    import boto3

    return boto3.client("logs", **_arguments(endpoint_url))  # pyright: ignore[reportUnknownMemberType]
