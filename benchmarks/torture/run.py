"""One run: feed, kill, wait, reconcile, judge."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import cycle
from pathlib import Path
from typing import Any, Final

from api_services.clock import utc_now
from api_services.credits.invariants import check_invariants
from api_services.delivery.dead_letters import reason_of, without_reason
from api_services.delivery.failures import COLLECTION
from api_services.errors import AppError, TransientError
from api_services.indexes import ensure_all_indexes
from api_services.interviews.reconcile import ReconcileCollaborators, Reconciled, reconcile_interviews
from api_services.interviews.repository import INTERVIEWS, InterviewRepository
from api_services.queues import INTERVIEW_COMPLETED, REPORT_GENERATE
from api_services.reports.models import ReportStatus
from api_services.reports.repository import REPORTS, ReportRepository
from api_services.reports.service import reset_report
from benchmarks.torture.feeder import Feeder
from benchmarks.torture.plan import Plan, plan_of
from benchmarks.torture.servers import QUEUES, Servers
from benchmarks.torture.verdict import Check, verdict
from toolchain.progress import Progress

CONSUMERS: Final = {INTERVIEW_COMPLETED.name: 3, REPORT_GENERATE.name: 4}
CALM_FROM: Final = 0.9
"""Kills end when so much of the work is done: the rest must get done by what the kills have left."""
FAULT_RATES: Final = {"rate_limit": 0.11, "server_error": 0.12, "slow": 0.15}
"""Each strikes what the ones before let through: together a third of the calls."""
SLOW_SECONDS: Final = 1.5
CHECK_EVERY_SECONDS: Final = 10.0
CLOSING_ROUNDS: Final = 10


@dataclass(slots=True)
class Counts:
    """What was done to the run."""

    consumers_killed: int = 0
    mongod_killed: int = 0
    checks_under_way: int = 0
    reconciled: list[Reconciled] = field(default_factory=list[Reconciled])
    redriven: int = 0
    reports_reset: int = 0


@dataclass(frozen=True, slots=True)
class Outcome:
    """The verdict, and the numbers beside it."""

    plan: Plan
    checks: list[Check]
    counts: Counts
    llm_calls: dict[str, Any]
    seconds: float

    @property
    def holds(self) -> bool:
        return all(check.holds for check in self.checks)


def torture(interviews: int, seed: int, *, home: Path, timeout_seconds: float, progress: Progress) -> Outcome:
    """Run it with data and logs below `home`.

    Raises `AppError` when a server does not start, a rule is violated under way, or the time is over.
    """
    plan = plan_of(interviews, seed, consumers=sum(CONSUMERS.values()))
    began = time.monotonic()
    with progress.step("start servers and consumers"):
        servers = Servers(home, CONSUMERS).start()
    with servers:
        run = _Run(servers, plan, began + timeout_seconds, progress)
        with progress.step("feed and kill"):
            run.feed_and_kill()
        with progress.step("drain"):
            run.drain()
        with progress.step("reconcile"):
            run.close_gaps()
        with progress.step("judge"):
            meant = {INTERVIEW_COMPLETED.dlq_url_env_key: plan.unknown_interviews}
            checks = verdict(servers.database, plan, servers.depths(), meant)
            checks.append(Check("invalid bodies dropped and kept", plan.bad_bodies, run.dropped_bodies()))
            calls = servers.llm("GET", "/_control/calls")
    return Outcome(plan, checks, run.counts, calls, time.monotonic() - began)


class _Run:
    def __init__(self, servers: Servers, plan: Plan, deadline: float, progress: Progress) -> None:
        self._servers = servers
        self._plan = plan
        self._deadline = deadline
        self._progress = progress
        self.counts = Counts()
        ensure_all_indexes(servers.database)
        self._feeder = Feeder(servers, plan)
        self._wanted = len(plan.interviews) + sum(1 for each in plan.interviews if each.failure_code is None)
        self._done = 0.0

    def feed_and_kill(self) -> None:
        """Until everything is fed and most of it done."""
        for kind, rate in FAULT_RATES.items():
            fault = {"kind": kind, "rate": rate, "seed": self._plan.fault_seeds[kind]}
            fault |= {"retryAfterSeconds": 0.5} if kind == "rate_limit" else {}
            fault |= {"delaySeconds": SLOW_SECONDS} if kind == "slow" else {}
            self._servers.llm("POST", "/_control/faults", fault)
        failures: list[BaseException] = []
        feeding = _background(self._feeder.run, failures)
        mongo_kills, kills = list(self._plan.mongo_kills), cycle(self._plan.kills)
        kill = next(kills)
        next_kill = time.monotonic() + kill.gap_seconds
        next_check = time.monotonic() + CHECK_EVERY_SECONDS
        # Consumers end with the thread that started them, so they are killed and started again by this one.
        while feeding.is_alive() or self._done < CALM_FROM:
            if failures:
                raise failures[0]
            self._look()
            if time.monotonic() > next_kill:
                self._servers.kill_consumer(kill.consumer)
                self.counts.consumers_killed += 1
                kill = next(kills)
                next_kill = time.monotonic() + kill.gap_seconds
            if mongo_kills and self._done >= mongo_kills[0].progress:
                self._servers.kill_mongod(mongo_kills.pop(0).down_seconds)
                self.counts.mongod_killed += 1
            if time.monotonic() > next_check:
                self._check_under_way()
                next_check = time.monotonic() + CHECK_EVERY_SECONDS
            if not feeding.is_alive() and not self._queued():
                # What is missing now is for the reconciler.
                break
            time.sleep(0.2)
        feeding.join()
        if failures:
            raise failures[0]

    def drain(self) -> None:
        """Until the queues are empty and stay so."""
        empty_since: float | None = None
        while empty_since is None or time.monotonic() - empty_since < 1.0:
            self._look()
            if self._queued():
                empty_since = None
            elif empty_since is None:
                empty_since = time.monotonic()
            time.sleep(0.2)

    def close_gaps(self) -> None:
        """What the scheduled reconciler and an operator do, until there is nothing left to do."""
        for _ in range(CLOSING_ROUNDS):
            now = utc_now()
            found = reconcile_interviews(
                ReconcileCollaborators.of(self._servers.database, self._feeder.queue),
                now=now,
                remaining_seconds=lambda: self._deadline - time.monotonic(),
                grace=timedelta(0),
            )
            self.counts.reconciled.append(found)
            reset = self._reset_failed_reports()
            redriven = self._redrive()
            self.counts.reports_reset += reset
            self.counts.redriven += redriven
            if not (found.unsettled or found.without_report or found.expired_leases or reset or redriven):
                return
            self.drain()
            self._servers.llm("DELETE", "/_control/faults")
        raise AppError("The gaps did not close", code="torture_not_closing")

    def dropped_bodies(self) -> int:
        """Invalid bodies in the failure store."""
        return self._servers.database[COLLECTION].count_documents({"outcome": "dropped"})

    def _look(self) -> None:
        """Count what is done; ends the run when its time is over or a consumer gave up by itself."""
        if time.monotonic() > self._deadline:
            raise AppError(f"The time was over with {self._done:.0%} done", code="torture_timeout")
        ended = self._servers.dead_consumers()
        if ended:
            raise AppError(f"A consumer of {ended[0]} ended by itself", code="torture_consumer_ended")
        try:
            settled = self._servers.database[INTERVIEWS].count_documents({"settledAt": {"$ne": None}})
            written = self._servers.database[REPORTS].count_documents({"status": ReportStatus.COMPLETED.value})
        except Exception as exc:  # noqa: BLE001
            # error-ends-here: the database is down on purpose, and is looked at again.
            self._progress.note(f"MongoDB: {type(exc).__name__}")
            return
        self._done = (settled + written) / self._wanted
        self._progress.note(
            f"fed {self._feeder.fed}/{len(self._plan.interviews)}  settled {settled}  reports {written}  "
            f"killed {self.counts.consumers_killed} consumers, {self.counts.mongod_killed} databases"
        )

    def _check_under_way(self) -> None:
        """The invariants hold after every commit, so also now."""
        try:
            violations = check_invariants(self._servers.database)
        except TransientError:
            return
        if violations:
            raise AppError(f"Violated while running: {violations[0]}", code="torture_violation")
        self.counts.checks_under_way += 1

    def _queued(self) -> int:
        depths = self._servers.depths()
        return sum(depths[spec.url_env_key] for spec in QUEUES)

    def _reset_failed_reports(self) -> int:
        database = self._servers.database
        reports, interviews = ReportRepository(database), InterviewRepository(database)
        failed = reports.failed(limit=1_000)
        for report in failed:
            reset_report(reports, interviews, self._feeder.queue, report.interview_id)
        return len(failed)

    def _redrive(self) -> int:
        """Move back what died of its receives; what was refused for a reason stays."""
        moved = 0
        for spec in QUEUES:
            dlq_url = self._servers.queue_urls[spec.dlq_url_env_key]
            for message in _received(self._servers.sqs, dlq_url):
                attributes = message.get("MessageAttributes", {})
                reason = reason_of(attributes)
                if reason is not None and reason.code == "not_found":
                    continue
                self._servers.sqs.send_message(
                    QueueUrl=self._servers.queue_urls[spec.url_env_key],
                    MessageBody=message["Body"],
                    MessageAttributes=without_reason(attributes),
                )
                self._servers.sqs.delete_message(QueueUrl=dlq_url, ReceiptHandle=message["ReceiptHandle"])
                moved += 1
        return moved


def _received(sqs: Any, url: str) -> Sequence[dict[str, Any]]:
    """Everything a queue holds now; hidden for two seconds."""
    found: dict[str, dict[str, Any]] = {}
    while True:
        answer = sqs.receive_message(
            QueueUrl=url, MaxNumberOfMessages=10, VisibilityTimeout=2, MessageAttributeNames=["All"]
        )
        fresh = {each["MessageId"]: each for each in answer.get("Messages", [])}
        if not fresh.keys() - found.keys():
            return list(found.values())
        found |= fresh


def _background(work: Callable[[], None], failures: list[BaseException]) -> threading.Thread:
    def guarded() -> None:
        try:
            work()
        except BaseException as exc:  # noqa: BLE001
            # error-ends-here: raised by the run, which looks at `failures`.
            failures.append(exc)

    thread = threading.Thread(target=guarded, daemon=True)
    thread.start()
    return thread
