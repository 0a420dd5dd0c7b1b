"""What the consumer wrapper adds to the work it cannot avoid: validating each body with pydantic.

The peers do the same work on the same events: find the failed ids of a batch whose records are all handled.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from api_services.interviews.messages import InterviewCompleted, InterviewFailed
from api_services.queues import INTERVIEW_COMPLETED
from benchmarks.harness import DEFAULT_ROUNDS, Row, side_by_side
from functions.platform.records import RecordContext
from functions.platform.sqs_consumer import sqs_consumer

Ended = InterviewCompleted | InterviewFailed

FLOOR: Final = "pydantic alone"
TARGETS: Final = {10: 1.6}
RECORDS_A_ROUND: Final = 400


class _LambdaContext:
    """Computes the remaining time as the runtime's own context does."""

    function_name = "bench"
    memory_limit_in_mb = 512
    invoked_function_arn = "arn:aws:lambda:eu-west-1:000000000000:function:bench"
    aws_request_id = "bench"

    def __init__(self) -> None:
        self._deadline_ms = int(time.time() * 1000) + 10**9

    def get_remaining_time_in_millis(self) -> int:
        left = self._deadline_ms - int(time.time() * 1000)
        return left if left > 0 else 0


def event_of(count: int) -> dict[str, Any]:
    """An event as SQS sends it."""
    ended_at = datetime(2026, 1, 1, 12, 30, tzinfo=UTC)
    return {
        "Records": [
            {
                "messageId": f"059f36b4-87a3-44ab-83d2-{number:012}",
                "receiptHandle": "AQEBwJnKyrHigUMZj6rYigCgxlaS3SLy0a",
                "body": InterviewCompleted(
                    interview_id=f"iv-{number:06}", organization_id=f"org-{number % 3}", ended_at=ended_at
                ).body(),
                "attributes": {
                    "ApproximateReceiveCount": "1",
                    "SentTimestamp": "1545082649183",
                    "SenderId": "AIDAIENQZJOLO23YVJ4VO",
                    "ApproximateFirstReceiveTimestamp": "1545082649185",
                },
                "messageAttributes": {
                    "requestId": {
                        "stringValue": f"{number:032x}",
                        "stringListValues": [],
                        "binaryListValues": [],
                        "dataType": "String",
                    }
                },
                "md5OfBody": "e4e68fb7bd0e697a0ae8f1bb342846b3",
                "eventSource": "aws:sqs",
                "eventSourceARN": "arn:aws:sqs:eu-west-1:000000000000:interview-completed",
                "awsRegion": "eu-west-1",
            }
            for number in range(count)
        ]
    }


def _nothing(_collaborators: None, _message: Ended, _context: RecordContext) -> None:
    """The work of a record, which is not what is measured."""


def _nothing_together(_collaborators: None, _messages: Sequence[Ended], _contexts: Sequence[RecordContext]) -> None:
    """The work of a group."""


def contestants(event: dict[str, Any]) -> dict[str, Callable[[], object]]:
    """All on the same event; the floor first."""
    context = _LambdaContext()
    validate_json = INTERVIEW_COMPLETED.adapter.validate_json
    consumer = sqs_consumer(INTERVIEW_COMPLETED, _nothing, connect=lambda: None)
    grouped = sqs_consumer(INTERVIEW_COMPLETED, _nothing, connect=lambda: None, group_handler=_nothing_together)

    def floor() -> None:
        for record in event["Records"]:
            validate_json(record["body"])

    return {
        FLOOR: floor,
        "wrapper": lambda: consumer(event, context),
        "wrapper, grouped": lambda: grouped(event, context),
        **_powertools(event, context),
    }


def _powertools(event: dict[str, Any], context: Any) -> dict[str, Callable[[], object]]:
    """AWS's own library for the same task, where it is installed: with its parser, and with the validation by hand."""
    try:
        from aws_lambda_powertools.utilities.batch import (
            BatchProcessor,
            EventType,
            process_partial_response,  # pyright: ignore[reportUnknownVariableType]
        )
        from aws_lambda_powertools.utilities.parser.models import SqsRecordModel
        from pydantic import Json
    except ImportError:
        return {}
    validate_json = INTERVIEW_COMPLETED.adapter.validate_json

    class Record(SqsRecordModel):
        body: Json[InterviewCompleted | InterviewFailed]  # pyright: ignore[reportIncompatibleVariableOverride]

    parsing = BatchProcessor(event_type=EventType.SQS, model=Record)
    plain = BatchProcessor(event_type=EventType.SQS)

    def handle(record: Any) -> None:
        """The work of a record."""

    def validate(record: Any) -> None:
        validate_json(record.body)

    def by_parser() -> object:
        return process_partial_response(event=event, record_handler=handle, processor=parsing, context=context)

    def by_hand() -> object:
        return process_partial_response(event=event, record_handler=validate, processor=plain, context=context)

    return {"Powertools, its parser": by_parser, "Powertools, no parser": by_hand}


def run(quick: bool) -> Iterable[Row]:
    """Microseconds a record, at batches of 1, 10 and 1000."""
    for count in (1, 10) if quick else (1, 10, 1000):
        functions = contestants(event_of(count))
        for function in functions.values():
            function()
        repeat = max(1, (40 if quick else RECORDS_A_ROUND) // count)
        seconds = side_by_side(functions, floor=FLOOR, repeat=repeat, rounds=2 if quick else DEFAULT_ROUNDS)
        for name in functions:
            if name != FLOOR:
                yield Row(
                    name=f"{name}, batch {count}",
                    value=seconds[name] / count * 1e6,
                    unit="us/record",
                    floor=seconds[FLOOR] / count * 1e6,
                    floor_name=FLOOR,
                    target=TARGETS.get(count) if name.startswith("wrapper") else None,
                )
