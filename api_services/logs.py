"""JSON log lines: a dotted event name, ids as fields, the request id in force, never a body or a secret."""

import json
import logging
import sys
import traceback
from datetime import UTC, datetime
from typing import Any

from api_services.request_context import current_request_id

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class JsonFormatter(logging.Formatter):
    """One JSON object a line; fields come from `extra`."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "event": record.getMessage(),
            "logger": record.name,
        }
        request_id = current_request_id()
        if request_id is not None:
            line["requestId"] = request_id
        line.update({key: value for key, value in vars(record).items() if key not in _STANDARD})
        if record.exc_info and record.exc_info[1] is not None:
            line["errorClass"] = type(record.exc_info[1]).__name__
            line["traceback"] = "".join(traceback.format_exception(record.exc_info[1], limit=-8))
        return json.dumps(line, default=str, ensure_ascii=False)


def configure_logging(level: str = "INFO") -> None:
    """Send every logger to standard output as JSON; calling it again changes nothing."""
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(JsonFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for noisy in ("botocore", "urllib3", "httpx", "httpx2", "httpcore", "httpcore2", "openai", "pymongo"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
