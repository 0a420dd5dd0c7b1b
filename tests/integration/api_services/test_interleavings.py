"""Random interleavings of all that can happen to interviews, credits and reports; the rules hold after each step.

Crashes strike before or after any write of the operation they hit, as in `tests.support.crashes`.
"""

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)
from pymongo.database import Database

from api_services.credits.invariants import check_invariants
from api_services.errors import BusyError, DependencyError, InvalidStateError, RateLimitedError
from api_services.interviews.models import InterviewStatus
from api_services.interviews.reconcile import GRACE, ReconcileCollaborators, reconcile_interviews
from api_services.interviews.service import complete_interview, fail_interview, record_transcript, settlement_message
from api_services.llm.client import RefusedAnswerError
from api_services.llm.costs import TokenUsage
from api_services.reports.models import MAX_ATTEMPTS, ReportStatus
from api_services.reports.service import get_report
from tests.integration.api_services.reports.test_service import FakeLanguageModel, Reporter
from tests.support.crashes import process_that_dies
from tests.support.worlds import World, conversation

pytestmark = pytest.mark.integration

ORGANIZATIONS = st.sampled_from(["acme", "other"])
CRASHES = st.none() | st.tuples(st.integers(0, 4), st.booleans())
FAULTS = st.sampled_from([None, None, "rate_limit", "server_error", "refusal"])
LEASE = timedelta(seconds=300)


class Interleavings(RuleBasedStateMachine):
    """The model beside the database: what was granted, what ended how, and which messages are on their way."""

    databases: tuple[Database[dict[str, Any]], ...] = ()
    """The one to work on; hypothesis looks through the attributes of the class, and a database answers to any name."""

    interviews = Bundle("interviews")
    deliveries = Bundle("deliveries")

    @initialize()
    def begin(self) -> None:
        (self.database,) = self.databases
        for name in self.database.list_collection_names():
            self.database[name].delete_many({})
        self.world = World(self.database)
        self.granted: dict[str, int] = {"acme": 0, "other": 0}
        self.required: dict[str, tuple[str, int]] = {}
        self.ended: dict[str, InterviewStatus] = {}
        self.grants: list[tuple[str, int, str, Any]] = []
        self.final: dict[str, ReportStatus] = {}

    @rule(target=interviews, organization=ORGANIZATIONS, required=st.integers(0, 12))
    def create(self, organization: str, required: int) -> str:
        interview = self.world.create(organization=organization, credits_required=required)
        record_transcript(self.world.interviews, interview.interview_id, conversation())
        self.required[interview.interview_id] = (organization, required)
        return interview.interview_id

    @rule(organization=ORGANIZATIONS, amount=st.integers(1, 20), days=st.none() | st.integers(1, 3), crash=CRASHES)
    def grant(self, organization: str, amount: int, days: int | None, crash: tuple[int, bool] | None) -> None:
        expires_at = None if days is None else self.world.now + timedelta(days=days)
        key = f"k-{len(self.grants)}"
        self._crashing(
            crash, lambda world: world.grant(amount, organization=organization, key=key, expires_at=expires_at)
        )
        self.world.grant(amount, organization=organization, key=key, expires_at=expires_at)
        self.granted[organization] += amount
        self.grants.append((organization, amount, key, expires_at))

    @rule(data=st.data())
    def repeat_a_grant(self, data: st.DataObject) -> None:
        if self.grants:
            organization, amount, key, expires_at = data.draw(st.sampled_from(self.grants))
            assert not self.world.grant(amount, organization=organization, key=key, expires_at=expires_at).created

    @rule(target=deliveries, interview_id=interviews, copies=st.integers(0, 2), fails=st.booleans())
    def end(self, interview_id: str, copies: int, fails: bool) -> Any:
        """Complete or fail; `copies` of the message are on their way: none is a crash before the enqueue."""
        status = InterviewStatus.FAILED if fails else InterviewStatus.COMPLETED
        world = self.world
        try:
            if fails:
                ended = fail_interview(
                    world.interviews, world.queue, interview_id, failure_code="no_show", now=world.now
                )
            else:
                ended = complete_interview(world.interviews, world.queue, interview_id, now=world.now)
        except InvalidStateError:
            assert self.ended[interview_id] is not status
            return multiple()  # pyright: ignore[reportUnknownVariableType]
        assert self.ended.setdefault(interview_id, status) is status
        return multiple(*[settlement_message(ended)] * copies)

    @rule(messages=st.lists(deliveries, min_size=1, max_size=3), times=st.integers(1, 2), crash=CRASHES)
    def deliver(self, messages: list[Any], times: int, crash: tuple[int, bool] | None) -> None:
        """One organization's messages together, others alone; a message may come again at any time."""
        for organization in ("acme", "other"):
            group = [message for message in messages if message.organization_id == organization]
            if group:
                self._crashing(crash, partial(_settled, messages=group))
                for _ in range(times):
                    self.world.settle(*group)

    @rule(message=consumes(deliveries))
    def lose_sight_of(self, message: Any) -> None:
        """A message is deleted: handled or dead-lettered, it does not come again."""

    @rule(interview_id=interviews, fault=FAULTS, crash=CRASHES)
    def report(self, interview_id: str, fault: str | None, crash: tuple[int, bool] | None) -> None:
        faults: dict[str, Exception] = {
            "rate_limit": RateLimitedError("slow down"),
            "server_error": DependencyError("500"),
            "refusal": RefusedAnswerError("no", TokenUsage(1, 0, 1)),
        }
        llm = FakeLanguageModel(*([faults[fault]] if fault else []))
        self._crashing(crash, partial(_reported, llm=llm, interview_id=interview_id))
        if crash is None:
            _reported(self.world, llm, interview_id)

    @rule(hours=st.sampled_from([0.1, 1, 25]))
    def pass_time(self, hours: float) -> None:
        self.world.pass_time(hours=hours)

    @rule(target=deliveries)
    def reconcile(self) -> Any:
        """What the reconciler sends is on its way."""
        self.world.queue.sent.clear()
        collaborators = ReconcileCollaborators(self.world.interviews, self.world.reports, self.world.queue)
        reconcile_interviews(collaborators, now=self.world.now, remaining_seconds=lambda: 100)
        return multiple(*self.world.queue.messages("interview-completed"))

    @invariant()
    def the_rules_hold(self) -> None:
        if hasattr(self, "world"):
            assert [str(violation) for violation in check_invariants(self.database)] == []

    @invariant()
    def every_ledger_is_what_was_granted_less_what_was_settled(self) -> None:
        if not hasattr(self, "world"):
            return
        for organization in ("acme", "other"):
            expected = self.granted[organization]
            for interview_id, (owner, required) in self.required.items():
                interview = self.world.interviews.get(interview_id)
                assert interview.status is self.ended.get(interview_id, InterviewStatus.CREATED)
                if owner == organization and interview.settled_at and interview.status is InterviewStatus.COMPLETED:
                    expected -= required
            assert sum(self.world.amounts(organization)) == expected

    @invariant()
    def a_finished_report_stays_finished_and_no_attempt_is_one_too_many(self) -> None:
        if not hasattr(self, "world"):
            return
        for interview_id in self.required:
            report = get_report(self.world.reports, self.world.interviews, interview_id)
            assert report.attempt_count <= MAX_ATTEMPTS
            if interview_id in self.final:
                assert report.status is self.final[interview_id]
            if report.status in (ReportStatus.COMPLETED, ReportStatus.FAILED):
                self.final[interview_id] = report.status

    def teardown(self) -> None:
        """Whatever happened, the reconciler and a few deliveries bring everything to its end."""
        if not hasattr(self, "world"):
            return
        self.world.pass_time(seconds=GRACE.total_seconds() + LEASE.total_seconds() + 1)
        for _ in range(MAX_ATTEMPTS + 1):
            self.world.pass_time(seconds=GRACE.total_seconds() + 1)
            self.reconcile()
            for message in self.world.queue.messages("interview-completed"):
                self.world.settle(message)  # pyright: ignore[reportArgumentType]  (of that queue)
            for message in self.world.queue.messages("report-generate"):
                _reported(self.world, FakeLanguageModel(), message.model_dump()["interview_id"])
        for interview_id, status in self.ended.items():
            assert self.world.interviews.get(interview_id).settled_at is not None
            if status is InterviewStatus.COMPLETED:
                report = get_report(self.world.reports, self.world.interviews, interview_id)
                assert report.status in (ReportStatus.COMPLETED, ReportStatus.FAILED)
        self.the_rules_hold()

    def _crashing(self, crash: tuple[int, bool] | None, work: Callable[[World], object]) -> None:
        """Do it in a process that dies; the caller repeats it in one that lives."""
        if crash is None:
            return
        with process_that_dies(self.database, crash[0], after=crash[1]) as (database, _):
            world = World(database)
            world.now = self.world.now
            work(world)
        self.the_rules_hold()


def _settled(world: World, messages: list[Any]) -> None:
    world.settle(*messages)


def _reported(world: World, llm: FakeLanguageModel, interview_id: str) -> None:
    with suppress(BusyError, RateLimitedError, DependencyError, InvalidStateError):
        Reporter(world, llm).deliver(interview_id)


def test_whatever_happens_in_whatever_order_the_rules_hold_after_every_step(
    mongo_database: Database[dict[str, Any]],
) -> None:
    class OnThisDatabase(Interleavings):
        databases = (mongo_database,)

    run_state_machine_as_test(
        OnThisDatabase,
        settings=settings(
            max_examples=20,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=(HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large),
            database=None,
            # Each step is real database work: a failure is shown as it was found, by its seed, not made smaller first.
            phases=(Phase.generate,),
        ),
    )
