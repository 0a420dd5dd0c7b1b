"""What queues and logs of the local stage say, beside what the API shows."""

import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from api_services.function_spec import physical_name
from api_services.queues import INTERVIEW_COMPLETED, QUEUES
from api_services.stages import LOCAL_STAGE
from local import clients
from local.running import RunningStage

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient

LOG_SECONDS: Final = 15.0
"""How long a log line may take to appear."""

_FUNCTION_NAME_MAX: Final = 64


@dataclass(frozen=True, slots=True)
class QueueDepth:
    """Messages of one queue and its dead-letter queue."""

    name: str
    waiting: int
    in_flight: int
    dead: int


@dataclass(frozen=True, slots=True)
class Evidence:
    """Ids of what was sent straight to the queue, log lines about the bad one, and everything before and after."""

    duplicate_ids: list[str]
    bad_id: str
    dropped_lines: list[dict[str, Any]]
    before: dict[str, Any]
    after: dict[str, Any]


def queue_depths(stage: RunningStage, sqs: "SQSClient") -> list[QueueDepth]:
    """Every queue of the stage."""
    return [
        QueueDepth(spec.name, *_depth(sqs, stage.outputs[spec.output]), _depth(sqs, stage.outputs[spec.dlq_output])[0])
        for spec in QUEUES
    ]


def dropped_lines(stage: RunningStage, message_id: str) -> list[dict[str, Any]]:
    """The consumer's log lines that say this message was dropped; empty where none comes within 15 seconds."""
    logs = clients.logs(stage.endpoint_url)
    group = f"/aws/lambda/{physical_name(LOCAL_STAGE, INTERVIEW_COMPLETED.name, limit=_FUNCTION_NAME_MAX)}"
    deadline = time.monotonic() + LOG_SECONDS
    while True:
        events = logs.filter_log_events(logGroupName=group, filterPattern=f'"{message_id}"').get("events", [])
        lines = [_parsed(event.get("message", "")) for event in events]
        found = [line for line in lines if line.get("event") == "consumer.record_dropped"]
        if found or time.monotonic() > deadline:
            return [line for line in found if line.get("messageId") == message_id]
        time.sleep(0.2)


def _parsed(line: str) -> dict[str, Any]:
    try:
        parsed: Any = json.loads(line)
    except ValueError:
        return {}
    return cast(dict[str, Any], parsed) if isinstance(parsed, dict) else {}


def _depth(sqs: "SQSClient", url: str) -> tuple[int, int]:
    attributes = sqs.get_queue_attributes(
        QueueUrl=url, AttributeNames=["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    ).get("Attributes", {})
    return (
        int(attributes.get("ApproximateNumberOfMessages", "0")),
        int(attributes.get("ApproximateNumberOfMessagesNotVisible", "0")),
    )
