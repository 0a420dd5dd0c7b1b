"""A process that polls a queue for a test. Arguments: queue URL, DLQ URL, folder, seconds a record.

Each record writes a file named after its interview when it begins, and one with `.done` when it ends.
"""

import signal
import sys
import threading
from pathlib import Path
from time import monotonic
from typing import Any

from botocore.session import get_session

from api_services.errors import NotFoundError, RateLimitedError
from api_services.interviews.messages import InterviewCompleted, InterviewFailed
from api_services.logs import configure_logging
from api_services.queues import INTERVIEW_COMPLETED
from functions.platform.delivery import SqsDelivery
from functions.platform.poller import Poller, PollOptions
from functions.platform.records import RecordContext
from functions.platform.sqs_consumer import sqs_consumer
from tests.support.fakes import FakeFailureStore


def main(queue_url: str, dlq_url: str, folder: Path, record_seconds: float, *, once: bool) -> None:
    client: Any = get_session().create_client("sqs")
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda number, frame: stop.set())

    def handle(collaborators: None, message: InterviewCompleted | InterviewFailed, context: RecordContext) -> None:
        (folder / message.interview_id).write_text(f"{context.receive_count} {context.remaining_seconds():.1f}")
        end = monotonic() + record_seconds
        while monotonic() < end:
            threading.Event().wait(0.02)
        (folder / f"{message.interview_id}.done").touch()
        if message.interview_id == "gone":
            raise NotFoundError("No such interview.")
        if message.interview_id == "later":
            raise RateLimitedError("Too many.", retry_after_seconds=30)
        if message.interview_id == "bad":
            raise ValueError("no")

    consumer = sqs_consumer(
        INTERVIEW_COMPLETED,
        handle,
        connect=lambda: None,
        delivery=lambda: SqsDelivery(queue_url, dlq_url, lambda: client),
        failures=FakeFailureStore,
    )
    options = PollOptions(wait_seconds=1, lease_seconds=3, once=once, until_empty=not once)
    (folder / "ready").touch()
    Poller(consumer, client, queue_url, options, stop).run()


if __name__ == "__main__":
    configure_logging()
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), float(sys.argv[4]), once="--once" in sys.argv)
