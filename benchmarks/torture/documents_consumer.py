"""`python -m benchmarks.torture.documents_consumer ingest`: the ingest consumer with a document lease of seconds, so
that what was killed is taken up within the run."""

import argparse
import dataclasses
import importlib
import logging
import os
import signal
import sys
import threading
from types import FrameType
from typing import Any, Final

from api_services.logs import configure_logging
from api_services.queues import queue_named
from functions.platform.poller import PollOptions
from functions.poll import poll

DOCUMENT_LEASE_SECONDS: Final = 4.0


def main() -> int:
    """Poll until SIGTERM, or until the parent is gone."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("queue")
    parser.add_argument("--function-timeout-seconds", type=int, required=True)
    parser.add_argument("--lease-seconds", type=int, required=True)
    options = parser.parse_args()
    configure_logging(os.environ.get("LOG_LEVEL", "WARNING"))
    logging.getLogger("pymongo").setLevel(logging.ERROR)
    spec = queue_named(options.queue)
    handler: Any = importlib.import_module(f"functions.{spec.module}.handler").handler
    connect = handler.connect

    def connect_with_short_lease() -> Any:
        collaborators = connect()
        tools = dataclasses.replace(collaborators.tools, lease_seconds=DOCUMENT_LEASE_SECONDS)
        return dataclasses.replace(collaborators, tools=tools)

    handler.connect = connect_with_short_lease
    stop = threading.Event()

    def on_sigterm(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    signal.signal(signal.SIGTERM, on_sigterm)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    poll(spec, PollOptions(wait_seconds=1, lease_seconds=options.lease_seconds), stop)
    return 0


if __name__ == "__main__":
    sys.exit(main())
