"""Metrics as log lines in CloudWatch's embedded metric format: no call, no agent, nothing to fail."""

import json
import os
import sys
import time
from typing import Final, Literal

from api_services.stages import LOCAL_STAGE

NAMESPACE: Final = "Sophia"

RECORDS_DROPPED: Final = "RecordsDropped"
RECORDS_FAILED: Final = "RecordsFailed"
RECORDS_DEAD_LETTERED: Final = "RecordsDeadLettered"
RECORDS_DEFERRED: Final = "RecordsDeferred"
RECORDS_NOT_STARTED: Final = "RecordsNotStarted"
REPORT_ENQUEUE_FAILED: Final = "ReportEnqueueFailed"
REPORTS_FAILED: Final = "ReportsFailed"
REPORT_COST_USD: Final = "ReportCostUsd"


def emit(
    name: str, value: float = 1, *, unit: Literal["Count", "Seconds", "None"] = "Count", **dimensions: str
) -> None:
    """Write one metric to standard output; `stage` and `dimensions` become its CloudWatch dimensions."""
    dimensions = {"stage": os.environ.get("STAGE") or LOCAL_STAGE, **dimensions}  # stages may share an account
    print(  # noqa: T201  (standard output is where CloudWatch reads the format)
        json.dumps(
            {
                "_aws": {
                    "Timestamp": int(time.time() * 1000),
                    "CloudWatchMetrics": [
                        {
                            "Namespace": NAMESPACE,
                            "Dimensions": [list(dimensions)],
                            "Metrics": [{"Name": name, "Unit": unit}],
                        }
                    ],
                },
                name: value,
                **dimensions,
            }
        ),
        file=sys.stdout,
        flush=True,
    )
