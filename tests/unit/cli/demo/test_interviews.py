"""The demonstration's interviews: real in length and kind, a plan that adds up, and checks that see each fault."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from api_services.errors import ConfigurationError
from api_services.interviews.models import Transcript
from cli.demo import interviews_checks, transcripts
from cli.demo.evidence import Evidence, QueueDepth
from cli.demo.interviews_plan import DUPLICATED, INTERVIEWS, NOT_JSON, ORGANIZATIONS
from cli.demo.interviews_played import InterviewShown, InterviewsPlayed, OrganizationShown
from cli.demo.transcripts import read_transcript, transcript_names, words_of

REPORT = {"summary": "Measured.", "overallScore": 70, "competencies": [{"score": 4, "evidenceQuote": "x"}]}


@pytest.mark.parametrize("name", transcript_names())
def test_a_transcript_is_of_real_length_and_what_the_api_takes(name: str) -> None:
    transcript = read_transcript(name)
    assert words_of(transcript) >= 1500
    parsed = Transcript.model_validate(transcript)
    times = [turn.at_seconds or 0 for turn in parsed.turns]
    assert times == sorted(times)
    assert len({turn.text for turn in parsed.turns}) == len(parsed.turns)


def test_every_transcript_is_used_once() -> None:
    assert sorted(plan.transcript for plan in INTERVIEWS) == transcript_names()
    assert len(transcript_names()) >= 6


def test_a_line_that_is_no_turn_is_named(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bad.txt").write_text("[00:01] Interviewer: Hello\nwho said this\n")
    monkeypatch.setattr(transcripts, "FOLDER", tmp_path)
    with pytest.raises(ConfigurationError, match="line 2"):
        read_transcript("bad")


def test_the_plan_adds_up() -> None:
    keys = [plan.key for plan in INTERVIEWS]
    assert DUPLICATED in keys
    for organization in ORGANIZATIONS:
        assert len({lot.amount for lot in organization.lots}) == len(organization.lots)
        plans = [plan for plan in INTERVIEWS if plan.organization == organization.key]
        for lot in organization.lots:
            assert lot.amount - sum(plan.draws.get(lot.key, 0) for plan in plans) == lot.remaining
        assert sum(plan.overdraft for plan in plans) == organization.overdraft
    for number, plan in enumerate(INTERVIEWS):
        assert sum(plan.draws.values()) + plan.overdraft == plan.consumed
        assert plan.after is None or plan.after in keys[:number]
    assert sum(plan.failure_code is not None for plan in INTERVIEWS) == 1
    assert sum(plan.overdraft > 0 for plan in INTERVIEWS) == 1


def _played() -> InterviewsPlayed:
    """As it goes when all is well."""
    played = InterviewsPlayed(run="r")
    for organization in ORGANIZATIONS:
        ledger: list[dict[str, Any]] = []
        for plan in INTERVIEWS:
            if plan.organization == organization.key:
                drawn = [(key, amount) for key, amount in plan.draws.items()]
                ledger += [_entry("CONSUMPTION", -amount, key, f"{plan.key}-r") for key, amount in drawn]
                if plan.overdraft:
                    ledger.append(_entry("OVERDRAFT", -plan.overdraft, None, f"{plan.key}-r"))
        ledger += [_entry("GRANT", lot.amount, lot.key, None) for lot in organization.lots]
        played.organizations[organization.key] = OrganizationShown(
            organization.key,
            organization.name,
            f"{organization.key}-r",
            balance={"overdraft": organization.overdraft, "available": 0},
            lots=[{"lotId": lot.key, "amount": lot.amount, "remaining": lot.remaining} for lot in organization.lots],
            ledger=ledger,
        )
    after: dict[str, Any] = {}
    for plan in INTERVIEWS:
        failed = plan.failure_code is not None
        played.interviews[plan.key] = InterviewShown(
            plan.key,
            f"{plan.key}-r",
            plan.organization,
            1500,
            plan.credits_required,
            status="FAILED" if failed else "COMPLETED",
            failure_code=plan.failure_code,
            settled=True,
            consumed=plan.consumed,
            report_status="-" if failed else "COMPLETED",
            report=None if failed else _report(plan.transcript),
        )
        interview = {"credits": {"consumed": plan.consumed}, "retentionExpiresAt": "2027-01-01T00:00:00Z"}
        after[plan.key] = [interview, {"status": "NOT_STARTED" if failed else "COMPLETED"}]
    played.queues = [QueueDepth(name, 0, 0, 0) for name in ("interview-completed", "report-generate")]
    line = {"event": "consumer.record_dropped", "code": "malformed_json", "messageId": "bad"}
    played.evidence = Evidence(["d1", "d2"], "bad", [line], deepcopy(after), after)
    return played


def _entry(kind: str, amount: int, lot: str | None, interview: str | None) -> dict[str, Any]:
    return {"kind": kind, "amount": amount, "lotId": lot, "interviewId": interview}


def _report(name: str) -> dict[str, Any]:
    report = deepcopy(REPORT)
    report["competencies"] = [{"score": 4, "evidenceQuote": read_transcript(name)["turns"][1]["text"]}]
    return report


def _broken(played: InterviewsPlayed) -> list[str]:
    checks = (
        interviews_checks.settled,
        interviews_checks.draws,
        interviews_checks.lots,
        interviews_checks.ledger,
        interviews_checks.reports,
        interviews_checks.quotes,
        interviews_checks.failed,
        interviews_checks.duplicates,
        interviews_checks.dropped,
        interviews_checks.queues,
    )
    return [one.__name__ for one in checks if one(played) is not None]


def _evidence(played: InterviewsPlayed) -> Evidence:
    assert played.evidence is not None
    return played.evidence


def test_when_all_is_well_no_check_complains() -> None:
    assert _broken(_played()) == []


SPOILS: list[tuple[Callable[[Any], Any], str]] = [
    (lambda p: setattr(p.interviews["support"], "consumed", 60), "settled"),
    (lambda p: setattr(p.interviews["designer"], "settled", False), "settled"),
    (lambda p: p.organizations["freight"].ledger[0].update(lotId="year"), "draws"),
    (lambda p: p.organizations["clinics"].ledger.append(dict(p.organizations["clinics"].ledger[0])), "draws"),
    (lambda p: p.organizations["freight"].lots[0].update(remaining=1), "lots"),
    (lambda p: p.organizations["clinics"].balance.update(overdraft=0), "lots"),
    (lambda p: p.organizations["freight"].ledger[-1].update(amount=41), "ledger"),
    (lambda p: setattr(p.interviews["support"], "report_status", "PROCESSING"), "reports"),
    (lambda p: p.interviews["support"].report["competencies"][0].update(score=6), "reports"),
    (lambda p: p.interviews["support"].report["competencies"][0].update(evidenceQuote="never said"), "quotes"),
    (lambda p: _evidence(p).after["designer"][1].update(status="COMPLETED"), "failed"),
    (lambda p: _evidence(p).after["support"][0]["credits"].update(consumed=60), "duplicates"),
    (lambda p: _evidence(p).dropped_lines.clear(), "dropped"),
    (lambda p: _evidence(p).dropped_lines.append(_evidence(p).dropped_lines[0]), "dropped"),
    (lambda p: _evidence(p).dropped_lines[0].update(body=NOT_JSON), "dropped"),
    (lambda p: p.queues.append(QueueDepth("report-generate", 0, 0, 1)), "queues"),
]


@pytest.mark.parametrize(("spoil", "seen_by"), SPOILS)
def test_each_fault_is_seen(spoil: Callable[[Any], Any], seen_by: str) -> None:
    played = _played()
    spoil(played)
    assert seen_by in _broken(played)
