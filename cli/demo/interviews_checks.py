"""The promises of the interview half, each checked against what the API, the queues, the logs and the database say."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any, Final

from pydantic import SecretStr

from api_services.credits.invariants import check_invariants
from api_services.mongo import connect
from api_services.queues import INTERVIEW_COMPLETED, REPORT_GENERATE
from api_services.settings import MongoSettings
from cli.demo.interviews_plan import INTERVIEWS, NOT_JSON, ORGANIZATIONS
from cli.demo.interviews_played import InterviewsPlayed, OrganizationShown
from cli.demo.transcripts import read_transcript
from local.running import RunningStage

_OURS: Final = (INTERVIEW_COMPLETED.name, REPORT_GENERATE.name)


def check(stage: RunningStage, played: InterviewsPlayed) -> dict[str, str | None]:
    """Each promise with the reason why it does not hold; None where it does."""
    promises: dict[str, Callable[[InterviewsPlayed], str | None]] = {
        "every interview is settled once, at its price": settled,
        "credits are drawn from the lot that expires first": draws,
        "lots and overdraft are what is left": lots,
        "the ledger's sum is what the lots have left, less the overdraft": ledger,
        "every completed interview has a report with scores": reports,
        "the failed interview costs nothing and has no report": failed,
        "two more deliveries of a completion change nothing": duplicates,
        "the message that is not JSON is dropped and logged": dropped,
        "queues and dead-letter queues are empty": queues,
    }
    found = {promise: holds(played) for promise, holds in promises.items()}
    if not stage.uses_real_openai:
        found["every quote in a report is in its transcript"] = quotes(played)
    found["the rules of credits hold over the whole database"] = _invariants(stage)
    return found


def settled(played: InterviewsPlayed) -> str | None:
    """Status, credits consumed and failure code are as planned."""
    for plan in INTERVIEWS:
        shown = played.interviews[plan.key]
        wanted = ("FAILED" if plan.failure_code else "COMPLETED", True, plan.consumed, plan.failure_code)
        if (shown.status, shown.settled, shown.consumed, shown.failure_code) != wanted:
            return f"{shown.interview_id} is {shown.status}, consumed {shown.consumed}, expected {plan.consumed}"
    return None


def draws(played: InterviewsPlayed) -> str | None:
    """Each interview drew what was planned from each lot, and owes what was planned."""
    for plan in INTERVIEWS:
        shown = played.interviews[plan.key]
        organization = played.organizations[plan.organization]
        names = lot_names(organization)
        drawn: dict[str, int] = defaultdict(int)
        for entry in organization.ledger:
            if entry["interviewId"] == shown.interview_id:
                drawn[names.get(entry["lotId"], "overdraft")] -= entry["amount"]
        wanted = {**plan.draws, **({"overdraft": plan.overdraft} if plan.overdraft else {})}
        if dict(drawn) != wanted:
            return f"{shown.interview_id} drew {dict(drawn)}, expected {wanted}"
    return None


def lot_names(organization: OrganizationShown) -> Mapping[str, str]:
    """Lot id to the name it has in the plan; amounts differ within an organization."""
    plan = next(one for one in ORGANIZATIONS if one.key == organization.key)
    by_amount = {lot.amount: lot.key for lot in plan.lots}
    return {lot["lotId"]: by_amount.get(lot["amount"], "unplanned") for lot in organization.lots}


def lots(played: InterviewsPlayed) -> str | None:
    """Lots and overdraft are as planned."""
    for plan in ORGANIZATIONS:
        shown = played.organizations[plan.key]
        left = {lot["amount"]: lot["remaining"] for lot in shown.lots}
        wanted = {lot.amount: lot.remaining for lot in plan.lots}
        if left != wanted or shown.balance["overdraft"] != plan.overdraft:
            return (
                f"{plan.name} has {left} and owes {shown.balance['overdraft']}, expected {wanted} and {plan.overdraft}"
            )
    return None


def ledger(played: InterviewsPlayed) -> str | None:
    """The sums agree, per organization."""
    for shown in played.organizations.values():
        ledger = sum(entry["amount"] for entry in shown.ledger)
        left = sum(lot["remaining"] for lot in shown.lots) - shown.balance["overdraft"]
        if ledger != left:
            return f"{shown.name}: the ledger has {ledger}, the lots {left}"
    return None


def reports(played: InterviewsPlayed) -> str | None:
    """Every completed interview has its report."""
    for plan in INTERVIEWS:
        shown = played.interviews[plan.key]
        if plan.failure_code:
            continue
        if shown.report_status != "COMPLETED" or shown.report is None:
            return f"{shown.interview_id} has a report that is {shown.report_status}"
        scores = [one["score"] for one in shown.report["competencies"]]
        if not scores or not all(1 <= score <= 5 for score in scores) or not shown.report["summary"]:
            return f"{shown.interview_id} has a report without scores"
    return None


def quotes(played: InterviewsPlayed) -> str | None:
    """Whatever a report quotes was said."""
    for plan in INTERVIEWS:
        report = played.interviews[plan.key].report
        if report is None:
            continue
        spoken = [turn["text"] for turn in read_transcript(plan.transcript)["turns"]]
        for one in report["competencies"]:
            if not any(one["evidenceQuote"] in text for text in spoken):
                return f"{plan.key}: nobody said '{one['evidenceQuote'][:80]}'"
    return None


def failed(played: InterviewsPlayed) -> str | None:
    """The failed interview is settled with nothing."""
    assert played.evidence is not None  # noqa: S101  (the checks come last)
    for plan in INTERVIEWS:
        if plan.failure_code:
            interview, report = played.evidence.after[plan.key]
            if interview["credits"]["consumed"] != 0 or report["status"] != "NOT_STARTED":
                return f"{plan.key} consumed {interview['credits']['consumed']}, its report is {report['status']}"
            if not interview["retentionExpiresAt"]:
                return f"{plan.key} has no date until which it is kept"
    return None


def duplicates(played: InterviewsPlayed) -> str | None:
    """Nothing that the API shows, and no call of the model, came of the two more deliveries."""
    assert played.evidence is not None  # noqa: S101
    before, after = played.evidence.before, played.evidence.after
    changed = [key for key in before if before[key] != after[key]]
    return f"changed: {', '.join(changed)}" if changed or before.keys() != after.keys() else None


def dropped(played: InterviewsPlayed) -> str | None:
    """One log line says so, with a reason and without the body."""
    assert played.evidence is not None  # noqa: S101
    lines: list[dict[str, Any]] = played.evidence.dropped_lines
    if not lines:
        return f"no log line says that {played.evidence.bad_id} was dropped"
    if len(lines) > 1:
        return f"{len(lines)} log lines say that it was dropped; it was delivered again"
    if not lines[0].get("code") or NOT_JSON in str(lines[0]):
        return "the log line has no reason code, or holds the body"
    return None


def queues(played: InterviewsPlayed) -> str | None:
    """Nothing waits, nothing is dead."""
    for depth in played.queues:
        if depth.name in _OURS and (depth.waiting or depth.in_flight or depth.dead):
            return f"{depth.name} holds {depth.waiting} waiting, {depth.in_flight} in flight, {depth.dead} dead"
    return None


def _invariants(stage: RunningStage) -> str | None:
    database = connect(MongoSettings(mongo_uri=SecretStr(stage.mongo_uri)), app_name="sophia-demo")
    try:
        violations = check_invariants(database)
    finally:
        database.client.close()
    return "; ".join(str(one) for one in violations[:3]) or None
