"""From the queue to the settled interview on the local stage, as it runs: latency of one, throughput of many."""

import time
import uuid
from collections.abc import Iterable, Sequence
from datetime import datetime
from statistics import quantiles
from typing import Any, Final, TypeVar

from pydantic import SecretStr

from api_services import mongo
from api_services.clock import utc_now
from api_services.credits.repository import CreditRepository
from api_services.credits.service import grant_credits
from api_services.errors import ConfigurationError
from api_services.interviews.repository import InterviewRepository
from api_services.interviews.service import complete_interview, create_interview
from api_services.messages import Message
from api_services.queues import INTERVIEW_COMPLETED, QueueSpec
from api_services.settings import MongoSettings
from api_services.sqs import QueueSender, SqsQueueSender
from benchmarks.harness import BenchSkippedError, Row
from local import clients
from local.running import RunningStage
from local.stage import LocalStage

M = TypeVar("M", bound=Message)

WAIT_SECONDS: Final = 120.0
ORGANIZATIONS: Final = 10
SPACING_SECONDS: Final = 0.05


class _HeldSender(QueueSender):
    """Keeps what is sent until it is released, in batches."""

    def __init__(self, sender: QueueSender) -> None:
        self._sender = sender
        self._held: list[Any] = []

    def send_batch(
        self,
        spec: "QueueSpec[M]",
        messages: Sequence[M],
        *,
        delay_seconds: int = 0,
        request_ids: Sequence[str | None] | None = None,
    ) -> None:
        """Keep them."""
        if spec.name != INTERVIEW_COMPLETED.name or delay_seconds or request_ids:
            raise ValueError("only completed interviews are held")
        self._held.extend(messages)

    def release(self) -> None:
        """Send all that is held."""
        self._sender.send_batch(INTERVIEW_COMPLETED, self._held)
        self._held.clear()


def run(quick: bool) -> Iterable[Row]:
    """Seconds by the clock of this machine, which all parts of the stage share."""
    try:
        running = LocalStage().running()
    except ConfigurationError as exc:
        raise BenchSkippedError(f"{exc.message.rstrip('.')}; this benchmark measures the stage as it runs") from exc
    world = _World(running)
    latencies = world.latencies(10 if quick else 100)
    cuts = quantiles(latencies, n=20)
    yield Row(name="enqueue to settled, p50", value=cuts[9] * 1000, unit="ms")
    yield Row(name="enqueue to settled, p95", value=cuts[18] * 1000, unit="ms")
    yield Row(
        name="interviews settled",
        value=world.throughput(50 if quick else 1000),
        unit="messages/s",
        higher_is_better=True,
    )


class _World:
    """Organizations with credits of their own, made for this run."""

    def __init__(self, running: RunningStage) -> None:
        database = mongo.connect(MongoSettings(mongo_uri=SecretStr(running.mongo_uri)))
        self._interviews = InterviewRepository(database)
        client = clients.sqs(running.endpoint_url)
        url = running.outputs[INTERVIEW_COMPLETED.output]
        self._sender = SqsQueueSender({INTERVIEW_COMPLETED.url_env_key: url}, lambda: client)
        prefix = f"bench-{uuid.uuid4().hex[:8]}"
        self._organizations = [f"{prefix}-{number}" for number in range(ORGANIZATIONS)]
        for organization_id in self._organizations:
            grant_credits(
                CreditRepository(database),
                organization_id=organization_id,
                amount=1_000_000,
                idempotency_key="bench",
                now=utc_now(),
            )

    def latencies(self, count: int) -> list[float]:
        """Seconds from enqueueing to settlement, of interviews that end one after the other. The first warms up."""
        sent: dict[str, datetime] = {}
        for interview_id in self._created(count + 1):
            sent[interview_id] = utc_now()
            complete_interview(self._interviews, self._sender, interview_id, now=utc_now())
            time.sleep(SPACING_SECONDS)
        settled = self._settled(sent)
        return [(settled[each] - sent[each]).total_seconds() for each in list(sent)[1:]]

    def throughput(self, count: int) -> float:
        """Messages a second from the first enqueued to the last settled, all enqueued at once."""
        held = _HeldSender(self._sender)
        ids = self._created(count)
        for interview_id in ids:
            complete_interview(self._interviews, held, interview_id, now=utc_now())
        began = utc_now()
        held.release()
        return count / (max(self._settled(ids).values()) - began).total_seconds()

    def _created(self, count: int) -> list[str]:
        return [
            create_interview(
                self._interviews,
                organization_id=self._organizations[number % ORGANIZATIONS],
                credits_required=1,
                now=utc_now(),
            ).interview_id
            for number in range(count)
        ]

    def _settled(self, ids: Iterable[str]) -> dict[str, datetime]:
        """When each was settled; waits until all are."""
        waiting = list(ids)
        settled: dict[str, datetime] = {}
        end = time.monotonic() + WAIT_SECONDS
        while waiting:
            for interview_id in waiting:
                moment = self._interviews.get(interview_id).settled_at
                if moment is not None:
                    settled[interview_id] = moment
            waiting = [each for each in waiting if each not in settled]
            if time.monotonic() > end:
                raise RuntimeError(f"{len(waiting)} interviews were not settled within {WAIT_SECONDS:.0f} s")
            time.sleep(0.02)
        return settled
