"""Moving dead messages back to the queue they came from: send, confirm, delete, never the other way round.

SQS's own move task is not used: it takes everything, checks nothing, drops the count of earlier redrives, and messages
that fail again while it runs go round once more.
"""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError
from pydantic import ValidationError

from api_services.delivery.dead_letters import ATTRIBUTES_MAX, without_reason
from api_services.errors import DependencyError, InvalidInputError, NotFoundError
from api_services.queues import QueueSpec
from cli.dlq.messages import REDRIVE_COUNT_ATTRIBUTE, DeadMessage, MessageFilter, depth, receive, release

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient

REDRIVE_LIMIT: Final = 3
"""Redrives of one message before a human should mend the cause; `--force` passes it."""

MAX_DELAY_SECONDS: Final = 900
"""SQS guide, quotas-messages: a message may be delayed by 0 to 900 seconds."""


@dataclass(slots=True)
class RedriveResult:
    """What a redrive did, or would do: message ids by outcome."""

    destination_url: str
    waiting_at_start: int
    moved: list[str] = field(default_factory=list[str])
    over_limit: list[str] = field(default_factory=list[str])
    invalid: list[str] = field(default_factory=list[str])
    not_matching: int = 0


def source_queue_urls(sqs: "SQSClient", dlq_url: str, *, stage_prefix: str) -> list[str]:
    """URLs of the stage's queues whose redrive policy names this DLQ, in order of name."""
    dlq_arn = _attributes(sqs, dlq_url, "QueueArn")["QueueArn"]
    pages = sqs.get_paginator("list_queues").paginate(QueueNamePrefix=stage_prefix)
    urls = sorted(url for page in pages for url in page.get("QueueUrls", []))
    return [url for url in urls if _dead_letter_target(sqs, url) == dlq_arn]


def destination(sqs: "SQSClient", dlq_url: str, *, stage_prefix: str, wanted: str | None) -> str:
    """URL of the queue that messages go back to: the DLQ's only source, or the one of its sources that is `wanted`.

    Raises `InvalidInputError` where there is none, where there are several and none is named, and where `wanted` is not
    one of them: another stage's queue never is.
    """
    sources = {url.rsplit("/", 1)[-1]: url for url in source_queue_urls(sqs, dlq_url, stage_prefix=stage_prefix)}
    names = ", ".join(sources)
    if not sources:
        raise InvalidInputError(
            f"no queue of this stage names {_name(dlq_url)} as its dead-letter queue; deploy the stage first",
            code="redrive_no_source",
        )
    if wanted is None:
        if len(sources) > 1:
            raise InvalidInputError(
                f"{_name(dlq_url)} serves {names}: say which with --to", code="redrive_ambiguous_source"
            )
        return next(iter(sources.values()))
    if wanted not in sources:
        raise InvalidInputError(
            f"'{wanted}' is not a source of {_name(dlq_url)}; --to takes {names}", code="redrive_wrong_destination"
        )
    return sources[wanted]


def redrive(
    sqs: "SQSClient",
    spec: QueueSpec[Any],
    *,
    dlq_url: str,
    destination_url: str,
    wanted: MessageFilter,
    execute: bool,
    force: bool = False,
    delay_seconds: int = 0,
    on_moved: Callable[[DeadMessage], None] | None = None,
) -> RedriveResult:
    """Move the messages that were there at the start and match; with `execute` false only say which.

    A message that was moved `REDRIVE_LIMIT` times, or whose body the consumer would drop, stays unless `force`. Raises
    `DependencyError` at the first send or delete that fails; what was not confirmed stays in the DLQ.
    """
    if not 0 <= delay_seconds <= MAX_DELAY_SECONDS:
        raise InvalidInputError(
            f"a delay is 0..{MAX_DELAY_SECONDS} seconds, {delay_seconds} given", code="redrive_delay"
        )
    waiting = depth(sqs, dlq_url)
    result = RedriveResult(destination_url=destination_url, waiting_at_start=waiting)
    started_seconds = time.time()
    sent_by_us: set[str] = set()
    held: dict[str, DeadMessage] = {}
    try:
        for message in receive(sqs, dlq_url, at_most=waiting):
            held[message.message_id] = message
            if message.message_id in sent_by_us:
                continue
            if not wanted.matches(message, now_seconds=started_seconds):
                result.not_matching += 1
            elif message.redrive_count >= REDRIVE_LIMIT and not force:
                result.over_limit.append(message.message_id)
            elif not force and not _is_valid(spec, message.body):
                result.invalid.append(message.message_id)
            else:
                if execute:
                    sent_by_us.add(_move(sqs, message, dlq_url, destination_url, delay_seconds, fifo=spec.fifo))
                    del held[message.message_id]
                    if on_moved is not None:
                        on_moved(message)
                result.moved.append(message.message_id)
    finally:
        release(sqs, dlq_url, held.values())
    return result


def _move(
    sqs: "SQSClient", message: DeadMessage, dlq_url: str, destination_url: str, delay_seconds: int, *, fifo: bool
) -> str:
    attributes = without_reason(message.attributes)
    if len(attributes) < ATTRIBUTES_MAX or REDRIVE_COUNT_ATTRIBUTE in attributes:
        attributes[REDRIVE_COUNT_ATTRIBUTE] = {"DataType": "Number", "StringValue": str(message.redrive_count + 1)}
    request: dict[str, Any] = {
        "QueueUrl": destination_url,
        "MessageBody": message.body,
        "MessageAttributes": attributes,
    }
    if fifo:
        request["MessageGroupId"] = message.system_attributes["MessageGroupId"]
        # The old deduplication id would make SQS drop a message it saw within five minutes.
        request["MessageDeduplicationId"] = f"redrive-{message.redrive_count + 1}-{message.message_id}"
    elif delay_seconds:
        request["DelaySeconds"] = delay_seconds
    try:
        sent = sqs.send_message(**request)
    except ClientError as exc:
        raise DependencyError(
            f"{_name(destination_url)} did not take message {message.message_id}; it is still in {_name(dlq_url)}",
            code="redrive_send_failed",
        ) from exc
    try:
        sqs.delete_message(QueueUrl=dlq_url, ReceiptHandle=message.receipt_handle)
    except ClientError as exc:
        raise DependencyError(
            f"message {message.message_id} was moved, but is still in {_name(dlq_url)}: redrive is safe to repeat, "
            "since consumers take duplicates",
            code="redrive_delete_failed",
        ) from exc
    return sent["MessageId"]


def _is_valid(spec: QueueSpec[Any], body: str) -> bool:
    try:
        spec.adapter.validate_json(body)
    except ValidationError:
        return False
    return True


def _attributes(sqs: "SQSClient", queue_url: str, name: Any) -> dict[str, str]:
    try:
        answer = sqs.get_queue_attributes(QueueUrl=queue_url, AttributeNames=[name])
    except sqs.exceptions.QueueDoesNotExist as exc:
        raise NotFoundError(f"there is no queue {_name(queue_url)}; deploy the stage first", code="no_queue") from exc
    return {str(key): value for key, value in answer.get("Attributes", {}).items()}


def _dead_letter_target(sqs: "SQSClient", queue_url: str) -> str | None:
    policy = _attributes(sqs, queue_url, "RedrivePolicy").get("RedrivePolicy")
    return json.loads(policy).get("deadLetterTargetArn") if policy else None


def _name(queue_url: str) -> str:
    return queue_url.rsplit("/", 1)[-1]
