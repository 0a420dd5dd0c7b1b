"""The interview half of the demonstration: from the bot's call to the finished report, with a duplicate and a bad
message straight to the queue, and a check of every promise at the end."""

import json
import time
import uuid
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import httpx

from api_services.errors import DependencyError
from api_services.queues import INTERVIEW_COMPLETED
from api_services.request_context import REQUEST_ID_ATTRIBUTE
from cli.demo.evidence import Evidence, dropped_lines, queue_depths
from cli.demo.interviews_checks import check
from cli.demo.interviews_plan import DUPLICATED, INTERVIEWS, NOT_JSON, ORGANIZATIONS, PlannedInterview
from cli.demo.interviews_played import InterviewShown, InterviewsPlayed, OrganizationShown
from cli.demo.transcripts import read_transcript, words_of
from local import clients
from local.running import RunningStage

TIMEOUT_SECONDS: Final = 300.0
"""As long as one report may take; the first ones start five processes at once."""
POLL_SECONDS: Final = 0.15

Watch = Callable[[InterviewsPlayed, str], None]


def play_interviews(stage: RunningStage, *, watch: Watch) -> InterviewsPlayed:
    """Play it against a running stage; `watch` is called with what is known and what goes on, several times a second.

    Raises `DependencyError` where the stage does not answer or does not finish within five minutes.
    """
    player = _Player(stage, InterviewsPlayed(run=uuid.uuid4().hex[:8]), watch)
    try:
        player.play()
    finally:
        player.close()
    return player.played


class _Player:
    def __init__(self, stage: RunningStage, played: InterviewsPlayed, watch: Watch) -> None:
        self._stage = stage
        self.played = played
        self._watch = watch
        self._doing = ""
        self._bot = _client(stage, "bot")
        self._admin = _client(stage, "admin")
        self._sqs = clients.sqs(stage.endpoint_url)

    def close(self) -> None:
        self._bot.close()
        self._admin.close()

    def play(self) -> None:
        with self._step("grant credits"):
            self._grant()
        with self._step("create interviews, record transcripts"):
            for plan in INTERVIEWS:
                self._create(plan)
        with self._step("complete, settle, report"):
            self._complete_all()
        with self._step("deliver duplicates and a bad message"):
            evidence = self._disturb()
        with self._step("check every promise"):
            self.played.evidence = evidence
            self.played.queues = queue_depths(self._stage, self._sqs)
            self.played.checks = check(self._stage, self.played)

    @contextmanager
    def _step(self, name: str) -> Generator[None]:
        self._doing = name
        self._show()
        started = time.monotonic()
        yield
        self.played.steps[name] = time.monotonic() - started

    def _show(self) -> None:
        self._watch(self.played, self._doing)

    def _grant(self) -> None:
        now = datetime.now(UTC)
        for plan in ORGANIZATIONS:
            shown = OrganizationShown(plan.key, plan.name, f"{plan.key}-{self.played.run}")
            self.played.organizations[plan.key] = shown
            for lot in plan.lots:
                body: dict[str, Any] = {"amount": lot.amount}
                if lot.expires_in_days is not None:
                    body["expiresAt"] = (now + timedelta(days=lot.expires_in_days)).isoformat()
                path = f"/organizations/{shown.organization_id}/credits/lots"
                _send(self._admin, "POST", path, body, {"Idempotency-Key": lot.key})
            self._read_organization(shown)

    def _create(self, plan: PlannedInterview) -> None:
        organization_id = self.played.organizations[plan.organization].organization_id
        transcript = read_transcript(plan.transcript)
        interview_id = f"{plan.key}-{self.played.run}"
        body = {
            "interviewId": interview_id,
            "organizationId": organization_id,
            "creditsRequired": plan.credits_required,
        }
        _send(self._bot, "POST", "/interviews", body)
        _send(self._bot, "PUT", f"/interviews/{interview_id}/transcript", transcript)
        last = transcript["turns"][-1]["atSeconds"]
        events = [{"kind": "tab_hidden", "atSeconds": last // 3}, {"kind": "second_voice", "atSeconds": last // 2}]
        _send(self._bot, "PUT", f"/interviews/{interview_id}/proctoring", {"events": events})
        self.played.interviews[plan.key] = InterviewShown(
            plan.key, interview_id, plan.organization, words_of(transcript), plan.credits_required, status="CREATED"
        )
        self._show()

    def _complete_all(self) -> None:
        waiting = list(INTERVIEWS)
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while True:
            for plan in list(waiting):
                if plan.after is None or self.played.interviews[plan.after].settled:
                    self._end(plan)
                    waiting.remove(plan)
            for shown in self.played.interviews.values():
                if not shown.finished:
                    self._read_interview(shown)
            for organization in self.played.organizations.values():
                self._read_organization(organization)
            self._show()
            if not waiting and all(shown.finished for shown in self.played.interviews.values()):
                return
            if time.monotonic() > deadline:
                late = ", ".join(one.interview_id for one in self.played.interviews.values() if not one.finished)
                raise DependencyError(f"not finished after {TIMEOUT_SECONDS:.0f} s: {late}; see `./sophia logs`")
            time.sleep(POLL_SECONDS)

    def _end(self, plan: PlannedInterview) -> None:
        interview_id = self.played.interviews[plan.key].interview_id
        headers = {"X-Request-Id": f"demo-{interview_id}"}
        if plan.failure_code is None:
            _send(self._bot, "POST", f"/interviews/{interview_id}/complete", None, headers)
        else:
            body = {"failureCode": plan.failure_code}
            _send(self._bot, "POST", f"/interviews/{interview_id}/fail", body, headers)

    def _disturb(self) -> Evidence:
        """Send what must have no effect, and wait until the queues have dealt with it."""
        before = self._all_that_could_change()
        url = self._stage.outputs[INTERVIEW_COMPLETED.output]
        shown = self.played.interviews[DUPLICATED]
        interview = _send(self._bot, "GET", f"/interviews/{shown.interview_id}")
        body = json.dumps(
            {
                "schemaVersion": 1,
                "type": "interview.completed",
                "interviewId": shown.interview_id,
                "organizationId": interview["organizationId"],
                "endedAt": interview["endedAt"],
            }
        )
        duplicates = [self._enqueue(url, body, f"demo-{self.played.run}-duplicate-{number}") for number in (1, 2)]
        bad = self._enqueue(url, NOT_JSON, f"demo-{self.played.run}-bad")
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while any(depth.waiting or depth.in_flight for depth in queue_depths(self._stage, self._sqs)):
            self._show()
            if time.monotonic() > deadline:
                raise DependencyError(f"the queues are not empty after {TIMEOUT_SECONDS:.0f} s; see `./sophia logs`")
            time.sleep(POLL_SECONDS)
        lines = dropped_lines(self._stage, bad)
        after = self._all_that_could_change()
        return Evidence(duplicates, bad, lines, before, after)

    def _enqueue(self, url: str, body: str, request_id: str) -> str:
        sent = self._sqs.send_message(
            QueueUrl=url,
            MessageBody=body,
            MessageAttributes={REQUEST_ID_ATTRIBUTE: {"DataType": "String", "StringValue": request_id}},
        )
        return sent["MessageId"]

    def _all_that_could_change(self) -> dict[str, Any]:
        for organization in self.played.organizations.values():
            self._read_organization(organization)
        seen: dict[str, Any] = {key: asdict(one) for key, one in self.played.organizations.items()}
        for shown in self.played.interviews.values():
            path = f"/interviews/{shown.interview_id}"
            seen[shown.key] = [_send(self._bot, "GET", path), _send(self._bot, "GET", f"{path}/report")]
        if not self._stage.uses_real_openai:
            seen["model calls"] = _send(httpx, "GET", f"{self._stage.llm_url}/_control/calls")["answered"]
        return seen

    def _read_interview(self, shown: InterviewShown) -> None:
        path = f"/interviews/{shown.interview_id}"
        interview = _send(self._bot, "GET", path)
        shown.status = interview["status"]
        shown.failure_code = interview["failureCode"]
        shown.settled = interview["settledAt"] is not None
        shown.consumed = interview["credits"]["consumed"]
        if shown.settled and shown.status == "COMPLETED":
            report = _send(self._bot, "GET", f"{path}/report")
            shown.report_status = report["status"]
            shown.report = report.get("content")

    def _read_organization(self, shown: OrganizationShown) -> None:
        path = f"/organizations/{shown.organization_id}/credits"
        shown.balance = _send(self._admin, "GET", path)
        shown.lots = _send(self._admin, "GET", f"{path}/lots")["items"]
        shown.ledger = _send(self._admin, "GET", f"{path}/ledger?limit=200")["items"]


def _client(stage: RunningStage, role: str) -> httpx.Client:
    headers = {"Authorization": f"Bearer {stage.keys[role]}"}
    return httpx.Client(base_url=stage.api_url, headers=headers, timeout=30.0, trust_env=False)


def _send(client: Any, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Any:
    try:
        response: httpx.Response = client.request(method, path, json=body, headers=headers)
    except httpx.TransportError as exc:
        raise DependencyError(
            f"{method} {path} was not answered ({type(exc).__name__}); see `./sophia logs api`"
        ) from exc
    if response.is_error:
        raise DependencyError(f"{method} {path} answered {response.status_code}: {response.text[:300]}")
    return response.json()
