"""Emptying a dead-letter queue so that it can be undone: every message is on disk before it is deleted."""

import base64
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from api_services.errors import DependencyError, InvalidInputError
from cli.dlq.messages import DeadMessage, depth, in_batches, receive

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient

_FIELDS: Final = frozenset({"messageId", "body", "attributes", "systemAttributes"})


def purge(sqs: "SQSClient", dlq_url: str, backup: Path) -> int:
    """Write the messages that are there now to `backup` (JSON lines, mode 0600), then delete them; answers how many.

    The file must not exist. Raises `DependencyError` at the first failed delete; the file then holds more than was
    deleted, never less.
    """
    try:
        descriptor = os.open(backup, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise InvalidInputError(f"{backup} exists; name another file with --backup", code="backup_exists") from None
    except OSError as exc:
        raise InvalidInputError(f"cannot write {backup}: {exc.strerror}", code="backup_unwritable") from exc
    deleted = 0
    with os.fdopen(descriptor, "w") as file:
        messages = list(receive(sqs, dlq_url, at_most=depth(sqs, dlq_url)))
        for group in in_batches(messages):
            file.writelines(json.dumps(_as_json(message)) + "\n" for message in group)
            file.flush()
            os.fsync(file.fileno())
            _delete(sqs, dlq_url, group)
            deleted += len(group)
    return deleted


def restore(sqs: "SQSClient", dlq_url: str, backup: Path, *, fifo: bool = False) -> int:
    """Send every message of a backup to the DLQ again, attributes kept; answers how many."""
    messages = list(_read(backup))
    for number, message in enumerate(messages, 1):
        request: dict[str, Any] = {
            "QueueUrl": dlq_url,
            "MessageBody": message["body"],
            "MessageAttributes": {name: _as_attribute(text) for name, text in message["attributes"].items()},
        }
        if fifo:
            request["MessageGroupId"] = message["systemAttributes"]["MessageGroupId"]
            request["MessageDeduplicationId"] = f"restore-{message['messageId']}"
        try:
            sqs.send_message(**request)
        except ClientError as exc:
            raise DependencyError(
                f"{number - 1} of {len(messages)} messages were restored, then SQS refused one", code="restore_failed"
            ) from exc
    return len(messages)


def _delete(sqs: "SQSClient", dlq_url: str, messages: Any) -> None:
    answer = sqs.delete_message_batch(
        QueueUrl=dlq_url,
        Entries=[{"Id": str(index), "ReceiptHandle": message.receipt_handle} for index, message in enumerate(messages)],
    )
    if answer.get("Failed"):
        raise DependencyError(
            f"SQS did not delete {len(answer['Failed'])} messages; the backup holds them, run purge again",
            code="purge_delete_failed",
        )


def _as_json(message: DeadMessage) -> dict[str, Any]:
    return {
        "messageId": message.message_id,
        "body": message.body,
        "attributes": {name: _as_text(value) for name, value in message.attributes.items()},
        "systemAttributes": dict(message.system_attributes),
    }


def _as_text(attribute: Mapping[str, Any]) -> dict[str, str]:
    text = {key: attribute[key] for key in ("DataType", "StringValue") if key in attribute}
    if "BinaryValue" in attribute:
        text["BinaryBase64"] = base64.b64encode(attribute["BinaryValue"]).decode()
    return text


def _as_attribute(text: Mapping[str, str]) -> dict[str, Any]:
    attribute: dict[str, Any] = {key: text[key] for key in ("DataType", "StringValue") if key in text}
    if "BinaryBase64" in text:
        attribute["BinaryValue"] = base64.b64decode(text["BinaryBase64"])
    return attribute


def _read(backup: Path) -> Iterator[dict[str, Any]]:
    try:
        lines = backup.read_text().splitlines()
    except OSError as exc:
        raise InvalidInputError(f"cannot read {backup}: {exc.strerror}", code="backup_unreadable") from exc
    for number, line in enumerate(lines, 1):
        message: Any = None
        try:
            message = json.loads(line)
            complete = message.keys() >= _FIELDS
        except (ValueError, AttributeError):
            complete = False
        if not complete:
            raise InvalidInputError(f"{backup}:{number} is not a message of a backup", code="backup_malformed")
        yield message
