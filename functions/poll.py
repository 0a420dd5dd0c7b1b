"""`python -m functions.poll QUEUE`: a queue's consumer as a long-polling process, on Fargate or under a debugger.

It needs what the function needs in its environment: its own queue's URL, its secrets, its settings.
"""

import argparse
import importlib
import logging
import os
import signal
import sys
import threading
from collections.abc import Sequence
from types import FrameType
from typing import Any, Final

from api_services.errors import ConfigurationError
from api_services.logs import configure_logging
from api_services.queues import QUEUES, STANDALONE, QueueSpec
from api_services.sqs import resolve_queue_url
from functions.platform.poller import Poller, PollOptions
from functions.platform.sqs_consumer import SqsConsumer

USER_ERROR: Final = 2
LEASE_MIN_SECONDS: Final = 3

logger = logging.getLogger(__name__)


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0 after a stop by signal or option, 2 with one sentence where the process must not run like this."""
    specs = {spec.name: spec for spec in (*QUEUES, *STANDALONE)}
    parsed = _parser(list(specs)).parse_args(arguments)
    configure_logging(os.environ.get("LOG_LEVEL") or "INFO")
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _stopper(stop))
    options = PollOptions(
        wait_seconds=parsed.wait_seconds,
        lease_seconds=parsed.lease_seconds,
        once=parsed.once,
        until_empty=parsed.until_empty,
    )
    try:
        poll(specs[parsed.queue], options, stop)
    except ConfigurationError as error:
        # error-ends-here: the process ends, and its messages are visible again.
        print(f"{error.message} ({error.code})", file=sys.stderr)  # noqa: T201
        return USER_ERROR
    return 0


def poll(spec: QueueSpec[Any], options: PollOptions, stop: threading.Event) -> None:
    """Poll `spec`'s queue with its consumer until `stop` is set, or as the options say."""
    from botocore.config import Config
    from botocore.session import get_session

    url = os.environ.get(spec.url_env_key)
    if not url:
        raise ConfigurationError(f"{spec.url_env_key} is not set. Set it to the queue's URL.")
    module = importlib.import_module(f"functions.{spec.module}.handler")
    consumer: SqsConsumer[Any, Any] = module.handler
    config = Config(
        connect_timeout=3,
        read_timeout=options.wait_seconds + 10,
        retries={"mode": "standard", "total_max_attempts": 3},
    )
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    client: Any = get_session().create_client("sqs", region_name=region, config=config)
    logger.info("poll.started", extra={"queue": spec.name})
    Poller(consumer, client, resolve_queue_url(url, os.environ), options, stop).run()
    logger.info("poll.stopped", extra={"queue": spec.name})


def _stopper(stop: threading.Event) -> Any:
    def on_signal(number: int, _frame: FrameType | None) -> None:
        """The first asks to finish; the second ends the process at once."""
        if stop.is_set():
            raise SystemExit(128 + number)
        stop.set()

    return on_signal


def _bounded(low: int, high: int) -> Any:
    def seconds(text: str) -> int:
        value = int(text)
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"{low}..{high} seconds, not {value}")
        return value

    return seconds


def _parser(queues: list[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m functions.poll", description="Poll a queue with its consumer.")
    parser.add_argument("queue", choices=queues, help="the queue's name in the registry")
    parser.add_argument("--once", action="store_true", help="receive once, work on that, and end")
    parser.add_argument("--until-empty", action="store_true", help="end when no message is left, hidden ones included")
    parser.add_argument("--wait-seconds", type=_bounded(0, 20), default=5, help="long-poll time (default 5)")
    parser.add_argument(
        "--lease-seconds",
        type=_bounded(LEASE_MIN_SECONDS, 43_200),
        default=60,
        help="how long messages stay hidden after the process was killed (default 60)",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
