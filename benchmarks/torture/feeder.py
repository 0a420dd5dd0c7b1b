"""The bot and the portal of a run: they create interviews, grant credits and repeat what failed."""

import time
from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar

from api_services.clock import utc_now
from api_services.credits.repository import CreditRepository
from api_services.credits.service import grant_credits
from api_services.errors import ConflictError, TransientError
from api_services.interviews.messages import InterviewCompleted
from api_services.interviews.models import InterviewStatus, Transcript, Turn
from api_services.interviews.repository import InterviewRepository
from api_services.interviews.service import (
    complete_interview,
    create_interview,
    fail_interview,
    record_transcript,
    settlement_message,
)
from api_services.queues import INTERVIEW_COMPLETED
from api_services.sqs import SqsQueueSender
from benchmarks.torture.plan import Plan, PlannedGrant, PlannedInterview
from benchmarks.torture.servers import Servers

R = TypeVar("R")

REPEAT_FOR_SECONDS = 60.0
RESENT_AFTER = 25
"""A duplicate is sent when so many further interviews have ended, so that it is late as well."""


class Feeder:
    """Plays a plan's interviews and grants."""

    def __init__(self, servers: Servers, plan: Plan) -> None:
        self._servers = servers
        self._plan = plan
        self._interviews = InterviewRepository(servers.database)
        self._credits = CreditRepository(servers.database)
        self.queue = SqsQueueSender(servers.queue_urls, lambda: servers.sqs)
        self.fed = 0

    def run(self) -> None:
        """Everything of the plan, in its order; returns when the last interview has ended."""
        grants = list(self._plan.grants)
        late: list[tuple[int, str]] = []
        self._poison()
        for number, planned in enumerate(self._plan.interviews):
            while grants and grants[0].before <= number:
                self._grant(grants.pop(0))
            self._play(planned)
            late += [(number + RESENT_AFTER * (1 + again), planned.interview_id) for again in range(planned.duplicates)]
            for due in [each for each in late if each[0] <= number]:
                late.remove(due)
                self._resend(due[1])
            self.fed = number + 1
            time.sleep(planned.gap_seconds)
        for _, interview_id in late:
            self._resend(interview_id)

    def _play(self, planned: PlannedInterview) -> None:
        interview_id = planned.interview_id
        _until_done(
            lambda: create_interview(
                self._interviews,
                organization_id=planned.organization_id,
                credits_required=planned.credits_required,
                now=utc_now(),
                interview_id=interview_id,
            )
        )
        transcript = Transcript(
            turns=(
                Turn(speaker="interviewer", text="Tell me about your last incident."),
                Turn(speaker="candidate", text=planned.words),
            )
        )
        _until_done(lambda: record_transcript(self._interviews, interview_id, transcript))
        if planned.enqueue_lost:
            _until_done(lambda: self._only_status(planned))
        elif planned.failure_code is None:
            _until_done(lambda: complete_interview(self._interviews, self.queue, interview_id, now=utc_now()))
        else:
            code = planned.failure_code
            _until_done(
                lambda: fail_interview(self._interviews, self.queue, interview_id, failure_code=code, now=utc_now())
            )

    def _only_status(self, planned: PlannedInterview) -> None:
        status = InterviewStatus.COMPLETED if planned.failure_code is None else InterviewStatus.FAILED
        self._interviews.end(planned.interview_id, status, ended_at=utc_now(), failure_code=planned.failure_code)

    def _resend(self, interview_id: str) -> None:
        interview = _until_done(lambda: self._interviews.get(interview_id))
        _until_done(lambda: self.queue.send(INTERVIEW_COMPLETED, settlement_message(interview)))

    def _grant(self, planned: PlannedGrant) -> None:
        expires_at = (
            None if planned.expires_in_seconds is None else utc_now() + timedelta(seconds=planned.expires_in_seconds)
        )
        for _ in range(1 + planned.repeats):
            _until_done(
                lambda: grant_credits(
                    self._credits,
                    organization_id=planned.organization_id,
                    amount=planned.amount,
                    idempotency_key=planned.key,
                    expires_at=expires_at,
                    now=utc_now(),
                )
            )

    def _poison(self) -> None:
        """Messages that are meant to die: unknown interviews, and bodies that are none."""
        for number in range(self._plan.unknown_interviews):
            message = InterviewCompleted(interview_id=f"unknown-{number}", organization_id="org-01", ended_at=utc_now())
            _until_done(lambda message=message: self.queue.send(INTERVIEW_COMPLETED, message))
        for number in range(self._plan.bad_bodies):
            body = ("not json", "{}", "[1, 2]")[number % 3]
            self._servers.sqs.send_message(
                QueueUrl=self._servers.queue_urls[INTERVIEW_COMPLETED.url_env_key], MessageBody=body
            )


def _until_done(call: Callable[[], R]) -> R:
    """A client that repeats what may be repeated, until it is done."""
    deadline = time.monotonic() + REPEAT_FOR_SECONDS
    while True:
        try:
            return call()
        except (TransientError, ConflictError) as exc:
            if time.monotonic() > deadline or (isinstance(exc, ConflictError) and exc.code == "conflict"):
                raise
            time.sleep(0.2)
