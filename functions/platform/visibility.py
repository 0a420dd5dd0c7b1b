"""Keeps messages hidden while a polling process works on them."""

import logging
import threading
from collections.abc import Callable, Mapping
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from api_services.delivery.dead_letters import DeadLetterReason
from functions.platform.delivery import Delivery
from functions.platform.records import Record

if TYPE_CHECKING:
    from types_boto3_sqs.client import SQSClient

BEATS_PER_LEASE: Final = 3
"""Two beats may be lost before a message is seen by others."""

logger = logging.getLogger(__name__)


class Heartbeat:
    """Renews the visibility of a batch until it is left, for at most `limit_seconds`.

    A message that `release` names is renewed no more, so that what the consumer set for it stays.
    """

    def __init__(
        self,
        client: "SQSClient",
        queue_url: str,
        receipts: Mapping[str, str],
        *,
        lease_seconds: int,
        limit_seconds: float,
    ) -> None:
        self._client = client
        self._queue_url = queue_url
        self._receipts = dict(receipts)
        self._lease_seconds = lease_seconds
        self._end = monotonic() + limit_seconds
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="visibility-heartbeat", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def release(self, message_id: str) -> None:
        """Renew this message no more; a renewal under way is waited for."""
        with self._lock:
            self._receipts.pop(message_id, None)

    def _beat(self) -> None:
        while not self._stop.wait(self._lease_seconds / BEATS_PER_LEASE) and monotonic() < self._end:
            with self._lock:
                self._renew()

    def _renew(self) -> None:
        from botocore.exceptions import BotoCoreError, ClientError

        if not self._receipts:
            return
        try:
            answer = self._client.change_message_visibility_batch(
                QueueUrl=self._queue_url,
                Entries=[
                    {"Id": str(number), "ReceiptHandle": receipt, "VisibilityTimeout": self._lease_seconds}
                    for number, receipt in enumerate(self._receipts.values())
                ],
            )
        except (BotoCoreError, ClientError) as exc:
            # error-ends-here: the next beat tries again; a message seen by others is what at-least-once allows.
            logger.warning("poll.heartbeat_failed", extra={"errorClass": type(exc).__name__})
            return
        if answer.get("Failed"):
            logger.warning("poll.heartbeat_failed", extra={"count": len(answer["Failed"])})


class ReleasingDelivery(Delivery):
    """Ends a message's heartbeat before the consumer sets its visibility."""

    def __init__(self, inner: Delivery, release: Callable[[str], None]) -> None:
        self._inner = inner
        self._release = release

    def dead_letter(self, record: Record, reason: DeadLetterReason) -> None:
        """As the inner one."""
        self._inner.dead_letter(record, reason)

    def set_visibility(self, record: Record, seconds: int) -> None:
        """As the inner one, and for good."""
        self._release(record["messageId"])
        self._inner.set_visibility(record, seconds)
