"""What the consumer processes that are killed have in common: their options, and polling until they are told."""

import argparse
import importlib
import logging
import os
import signal
import threading
from types import FrameType
from typing import Any

from api_services.logs import configure_logging
from api_services.queues import QueueSpec, queue_named
from functions.platform.poller import PollOptions
from functions.poll import poll


def options_of(description: str | None) -> argparse.Namespace:
    """The queue, the function's timeout and the lease, from the command line; logging is set up."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("queue")
    parser.add_argument("--function-timeout-seconds", type=int, required=True)
    parser.add_argument("--lease-seconds", type=int, required=True)
    options = parser.parse_args()
    configure_logging(os.environ.get("LOG_LEVEL", "WARNING"))
    logging.getLogger("pymongo").setLevel(logging.ERROR)
    return options


def handler_of(queue: str) -> tuple[QueueSpec[Any], Any]:
    """The queue's spec and its Lambda handler."""
    spec = queue_named(queue)
    return spec, importlib.import_module(f"functions.{spec.module}.handler").handler


def poll_until_told(spec: QueueSpec[Any], lease_seconds: int) -> None:
    """Poll until SIGTERM, or until the parent is gone; Ctrl-C is the parent's."""
    stop = threading.Event()

    def on_sigterm(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    signal.signal(signal.SIGTERM, on_sigterm)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    poll(spec, PollOptions(wait_seconds=1, lease_seconds=lease_seconds), stop)
