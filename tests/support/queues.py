"""A queue with its dead-letter queue on the emulator."""

import uuid
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from botocore.session import get_session

from local.emulator import Emulator

if TYPE_CHECKING:
    from types_boto3_sqs.client import SQSClient


@dataclass(frozen=True)
class QueuePair:
    """Both URLs, and a client of the test's own."""

    client: "SQSClient"
    url: str
    dlq_url: str

    def send(self, body: str, **options: Any) -> str:
        return self.client.send_message(QueueUrl=self.url, MessageBody=body, **options)["MessageId"]

    def receive(self, url: str, *, wait_seconds: int = 5, count: int = 10, **options: Any) -> list[Any]:
        answer = self.client.receive_message(
            QueueUrl=url,
            MaxNumberOfMessages=count,
            WaitTimeSeconds=wait_seconds,
            MessageSystemAttributeNames=["All"],
            MessageAttributeNames=["All"],
            **options,
        )
        return list(answer.get("Messages", []))

    def depth(self, url: str) -> tuple[int, int]:
        """(visible, in flight)"""
        names: list[Any] = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        attributes: dict[Any, str] = self.client.get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"]
        return tuple(int(attributes[name]) for name in names)  # pyright: ignore[reportReturnType]

    def wait_for_depth(self, url: str, expected: tuple[int, int], *, seconds: float = 15) -> None:
        end = monotonic() + seconds
        while (depth := self.depth(url)) != expected:
            assert monotonic() < end, f"depth is {depth}, not {expected}"
            sleep(0.05)


def sqs_client(emulator: Emulator) -> "SQSClient":
    client: Any = get_session().create_client(
        "sqs",
        region_name="eu-west-1",
        endpoint_url=emulator.endpoint_url,
        aws_access_key_id="test",
        aws_secret_access_key="test",
    )
    return client


@contextmanager
def queue_pair(emulator: Emulator, *, fifo: bool = False, max_receive_count: int = 3) -> Generator[QueuePair]:
    client = sqs_client(emulator)
    suffix = ".fifo" if fifo else ""
    name = f"test-{uuid.uuid4().hex}"
    options: dict[str, str] = {"FifoQueue": "true"} if fifo else {}
    dlq_url = client.create_queue(QueueName=f"{name}-dlq{suffix}", Attributes=options)["QueueUrl"]  # pyright: ignore[reportArgumentType]
    arn = client.get_queue_attributes(QueueUrl=dlq_url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    redrive = f'{{"deadLetterTargetArn":"{arn}","maxReceiveCount":{max_receive_count}}}'
    url = client.create_queue(QueueName=f"{name}{suffix}", Attributes={**options, "RedrivePolicy": redrive})["QueueUrl"]  # pyright: ignore[reportArgumentType]
    yield QueuePair(client, url, dlq_url)
    client.delete_queue(QueueUrl=url)
    client.delete_queue(QueueUrl=dlq_url)
