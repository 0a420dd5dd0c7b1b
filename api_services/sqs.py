"""Sending to queues. botocore is imported on the first send: a consumer that sends nothing never pays for it."""

import hashlib
import logging
import os
import random
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import urlsplit, urlunsplit

from api_services.errors import ConfigurationError, DependencyError, InvalidInputError, PermanentError
from api_services.messages import Message
from api_services.request_context import REQUEST_ID_ATTRIBUTE, current_request_id, new_request_id

if TYPE_CHECKING:
    from types_boto3_sqs.client import SQSClient

    from api_services.queues import QueueSpec

M = TypeVar("M", bound=Message)

BATCH_MAX_ENTRIES: Final = 10
"""Entries of one SendMessageBatch (API reference, SendMessageBatch)."""

BATCH_MAX_BYTES: Final = 1_048_576
"""Of one message and of a whole batch, attributes included (API reference, SendMessageBatch)."""

DELAY_MAX_SECONDS: Final = 900
"""Longest DelaySeconds (API reference, SendMessage)."""

SEND_ATTEMPTS: Final = 4
"""For entries that SQS itself reports as failed; lost connections are retried below, by botocore."""

RETRY_FIRST_SECONDS: Final = 0.1

_REQUEST_ID: Final = re.compile(r"[\x21-\x7e]{1,128}")

logger = logging.getLogger(__name__)


class SendError(DependencyError):
    """Some messages of a batch were not sent; `failed` are their positions in what was passed."""

    code = "send_failed"

    def __init__(self, message: str, *, queue: str, failed: Sequence[int]) -> None:
        super().__init__(message, queue=queue, positions=",".join(map(str, failed)))
        self.failed = tuple(failed)


class QueueSender(ABC):
    """Sends messages to the queue of a spec, with the request id in force."""

    @abstractmethod
    def send_batch(
        self,
        spec: "QueueSpec[M]",
        messages: Sequence[M],
        *,
        delay_seconds: int = 0,
        request_ids: Sequence[str | None] | None = None,
    ) -> None:
        """Send all of them; `request_ids` are one for each message where they come from several requests.

        Raises `SendError` with the positions not sent, `PermanentError` where no retry could send them.
        """

    def send(self, spec: "QueueSpec[M]", message: M, *, delay_seconds: int = 0) -> None:
        """Send one; errors as `send_batch`."""
        self.send_batch(spec, (message,), delay_seconds=delay_seconds)


@dataclass(frozen=True, slots=True)
class _Entry:
    position: int
    request: dict[str, Any]
    size_bytes: int


class SqsQueueSender(QueueSender):
    """The real one. `queue_urls` maps `spec.url_env_key` to a URL; a queue without one is skipped with a warning."""

    def __init__(
        self,
        queue_urls: Mapping[str, str],
        client: "Callable[[], SQSClient]",
        *,
        sleep: Callable[[float], object] = time.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.queue_urls = queue_urls
        self._client = client
        self._sleep = sleep
        self._jitter = jitter

    def send_batch(
        self,
        spec: "QueueSpec[M]",
        messages: Sequence[M],
        *,
        delay_seconds: int = 0,
        request_ids: Sequence[str | None] | None = None,
    ) -> None:
        """Send in as few calls as ten entries and the byte limit allow."""
        if not 0 <= delay_seconds <= DELAY_MAX_SECONDS:
            raise InvalidInputError(f"A delay is 0..{DELAY_MAX_SECONDS} seconds, not {delay_seconds}.")
        url = self.queue_urls.get(spec.url_env_key)
        if not url:
            logger.warning("producer.skipped", extra={"queue": spec.name, "count": len(messages)})
            return
        ids = request_ids if request_ids is not None else [current_request_id()] * len(messages)
        entries = [
            _entry(spec, position, message, delay_seconds, request_id)
            for position, (message, request_id) in enumerate(zip(messages, ids, strict=True))
        ]
        failed: list[int] = []
        refused: list[int] = []
        cause: Exception | None = None
        for batch in batches(entries):
            if cause is not None:
                # The queue does not answer: further calls would only spend the caller's time.
                failed.extend(entry.position for entry in batch)
                continue
            unsent, cause = self._send_entries(url, batch, refused)
            failed.extend(unsent)
        if failed or refused:
            raise _send_error(spec, failed, refused) from cause

    def _send_entries(
        self, url: str, batch: Sequence[_Entry], refused: list[int]
    ) -> tuple[list[int], Exception | None]:
        """Positions not sent, and the error where a whole call failed."""
        from botocore.exceptions import BotoCoreError, ClientError

        pending = {str(entry.position): entry for entry in batch}
        cause: Exception | None = None
        for attempt in range(SEND_ATTEMPTS):
            if attempt:
                self._sleep(RETRY_FIRST_SECONDS * 2 ** (attempt - 1) * (0.5 + self._jitter()))
            entries: list[Any] = [entry.request for entry in pending.values()]
            try:
                answer = self._client().send_message_batch(QueueUrl=url, Entries=entries)
            except (BotoCoreError, ClientError) as exc:  # returned, and raised by the caller with every position
                cause = exc
                break
            for done in answer.get("Successful", []):
                pending.pop(done["Id"], None)
            for fault in answer.get("Failed", []):
                if fault["SenderFault"] and fault["Id"] in pending:
                    refused.append(pending.pop(fault["Id"]).position)
            if not pending:
                break
        return [entry.position for entry in pending.values()], cause


def _send_error(spec: "QueueSpec[Any]", failed: Sequence[int], refused: Sequence[int]) -> SendError | PermanentError:
    positions = sorted([*failed, *refused])
    if failed:
        return SendError(
            f"{len(positions)} messages were not sent to {spec.name}.",
            queue=spec.name,
            failed=positions,
        )
    return PermanentError(
        f"SQS refuses {len(positions)} messages for {spec.name}.",
        code="message_refused",
        queue=spec.name,
        positions=",".join(map(str, positions)),
    )


def _entry(spec: "QueueSpec[M]", position: int, message: M, delay_seconds: int, request_id: str | None) -> _Entry:
    body = message.body()
    request: dict[str, Any] = {
        "Id": str(position),
        "MessageBody": body,
        "MessageAttributes": {REQUEST_ID_ATTRIBUTE: {"DataType": "String", "StringValue": _request_id(request_id)}},
    }
    if spec.fifo:
        group = getattr(message, spec.group_by) if spec.group_by else spec.name
        request["MessageGroupId"] = str(group)
        request["MessageDeduplicationId"] = hashlib.sha256(body.encode()).hexdigest()
    elif delay_seconds:
        request["DelaySeconds"] = delay_seconds
    size = message_bytes(body, request["MessageAttributes"])
    if size > BATCH_MAX_BYTES:
        raise PermanentError(
            f"A message for {spec.name} has {size} bytes; SQS takes {BATCH_MAX_BYTES}.", code="message_too_large"
        )
    return _Entry(position, request, size)


def _request_id(wanted: str | None) -> str:
    return wanted if wanted is not None and _REQUEST_ID.fullmatch(wanted) else new_request_id()


def message_bytes(body: str, attributes: Mapping[str, Any]) -> int:
    """What SQS counts: the body, and of each attribute its name, type and value."""
    return len(body.encode()) + sum(
        len(name.encode()) + len(value["DataType"]) + len(value["StringValue"].encode())
        for name, value in attributes.items()
    )


def batches(entries: Sequence[_Entry]) -> Iterator[list[_Entry]]:
    """Split in order, each part within ten entries and the byte limit."""
    batch: list[_Entry] = []
    size = 0
    for entry in entries:
        if batch and (len(batch) == BATCH_MAX_ENTRIES or size + entry.size_bytes > BATCH_MAX_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(entry)
        size += entry.size_bytes
    if batch:
        yield batch


def resolve_queue_url(url: str, environ: Mapping[str, str]) -> str:
    """The URL as this process must use it.

    With `AWS_ENDPOINT_URL_SQS` or `AWS_ENDPOINT_URL` set, host and port are the endpoint's: an emulator names itself as
    seen from its own side. Without, nothing is rewritten. A URL of another account than `AWS_ACCOUNT_ID` is refused
    with `ConfigurationError`.
    """
    parts = urlsplit(url)
    account = environ.get("AWS_ACCOUNT_ID")
    if account and parts.path.strip("/").split("/")[0] != account:
        raise ConfigurationError(f"The queue URL {url} is not of account {account}. Correct the URL or AWS_ACCOUNT_ID.")
    endpoint = environ.get("AWS_ENDPOINT_URL_SQS") or environ.get("AWS_ENDPOINT_URL")
    if not endpoint:
        return url
    target = urlsplit(endpoint)
    return urlunsplit((target.scheme, target.netloc, parts.path, "", ""))


@cache
def sqs_client() -> "SQSClient":
    """The process's SQS client, with bounded times and retries; endpoints as the SDK reads them."""
    from botocore.config import Config
    from botocore.session import get_session

    # Attempts x read timeout stays below the time a consumer keeps free at its end for the smallest function.
    config = Config(connect_timeout=2, read_timeout=3, retries={"mode": "standard", "total_max_attempts": 3})
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    client: Any = get_session().create_client("sqs", region_name=region, config=config)
    return client


def queue_sender(environ: Mapping[str, str]) -> SqsQueueSender:
    """A sender to every queue whose URL `environ` names."""
    urls = {
        key: resolve_queue_url(value, environ) for key, value in environ.items() if key.endswith("_QUEUE_URL") and value
    }
    return SqsQueueSender(urls, sqs_client)


def check_queue(url: str) -> None:
    """Ask the queue for its ARN; `DependencyError` when it is not there, is forbidden or does not answer."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        sqs_client().get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
    except ClientError as exc:
        reason = exc.response.get("Error", {}).get("Code", "")
        raise DependencyError(f"SQS answered {reason} for {url}.", code="queue_unavailable") from exc
    except BotoCoreError as exc:
        raise DependencyError(f"SQS did not answer ({type(exc).__name__}).", code="queue_unavailable") from exc
