"""What is shown of dead messages, and the reasons that the failure store adds."""

import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import typer

from api_services.delivery.failures import KeptFailure
from api_services.errors import DependencyError
from cli.dlq.messages import DeadMessage
from cli.dlq.reasons import kept_failures
from cli.stage_access import StageAccess


def kept_of(access: StageAccess, queue: str, messages: Sequence[DeadMessage]) -> Mapping[str, KeptFailure]:
    """What the failure store knows of these messages; a note where it is out of reach."""
    if not messages:
        return {}
    try:
        return kept_failures(access, queue, [message.original_message_id for message in messages])
    except DependencyError as exc:
        typer.echo(f"reasons come from the messages alone: {exc.message}", err=True)
        return {}


def summary_of(message: DeadMessage, kept: KeptFailure | None) -> dict[str, Any]:
    """What is said of a message without showing its body."""
    reason = message.reason
    return {
        "messageId": message.message_id,
        "originalMessageId": message.original_message_id,
        "sentAt": _sent_at(message),
        "ageSeconds": round(time.time() - message.sent_at_seconds),
        "errorCode": reason.code if reason else kept.code if kept else None,
        "errorClass": reason.error_class if reason else kept.error_class if kept else None,
        "receiveCount": reason.receive_count if reason else kept.receive_count if kept else None,
        "fingerprint": kept.fingerprint if kept else None,
        "where": kept.frames[-1] if kept and kept.frames else None,
        "redriveCount": message.redrive_count,
        "requestId": message.request_id,
        "bodyDigest": message.body_digest,
    }


def _sent_at(message: DeadMessage) -> str:
    return datetime.fromtimestamp(message.sent_at_seconds, UTC).isoformat(timespec="seconds")
