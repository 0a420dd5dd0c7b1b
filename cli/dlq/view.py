"""What is shown of dead letters, and the reasons that the failure store adds."""

import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import typer

from api_services.errors import DependencyError
from api_services.failures import KeptFailure
from cli.dlq.letters import DeadLetter
from cli.dlq.reasons import kept_failures
from cli.stage_access import StageAccess


def kept_of(access: StageAccess, queue: str, letters: Sequence[DeadLetter]) -> Mapping[str, KeptFailure]:
    """What the failure store knows of these letters; a note where it is out of reach."""
    if not letters:
        return {}
    try:
        return kept_failures(access, queue, [letter.original_message_id for letter in letters])
    except DependencyError as exc:
        typer.echo(f"reasons come from the messages alone: {exc.message}", err=True)
        return {}


def summary_of(letter: DeadLetter, kept: KeptFailure | None) -> dict[str, Any]:
    """What is said of a letter without showing its body."""
    reason = letter.reason
    return {
        "messageId": letter.message_id,
        "originalMessageId": letter.original_message_id,
        "sentAt": _sent_at(letter),
        "ageSeconds": round(time.time() - letter.sent_at_seconds),
        "errorCode": reason.code if reason else kept.code if kept else None,
        "errorClass": reason.error_class if reason else kept.error_class if kept else None,
        "receiveCount": reason.receive_count if reason else kept.receive_count if kept else None,
        "fingerprint": kept.fingerprint if kept else None,
        "where": kept.frames[-1] if kept and kept.frames else None,
        "redriveCount": letter.redrive_count,
        "requestId": letter.request_id,
        "bodyDigest": letter.body_digest,
    }


def _sent_at(letter: DeadLetter) -> str:
    return datetime.fromtimestamp(letter.sent_at_seconds, UTC).isoformat(timespec="seconds")
