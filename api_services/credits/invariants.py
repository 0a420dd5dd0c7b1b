"""What must hold after every commit, checked over the whole database on one snapshot; reads only."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from api_services.credits.models import EntryKind
from api_services.credits.repository import ACCOUNTS, LEDGER, LOTS
from api_services.interviews.models import InterviewStatus
from api_services.interviews.repository import INTERVIEWS
from api_services.mongo import MongoDatabase, Session, translated_errors

MAX_VIOLATIONS: Final = 100


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule that does not hold, the thing it does not hold for, and the numbers."""

    rule: str
    subject: str
    detail: str

    def __str__(self) -> str:
        return f"{self.subject}: {self.rule} ({self.detail})"


def check_invariants(database: MongoDatabase) -> list[Violation]:
    """Every violation of the rules of credits and settlement, at most 100; empty when all holds.

    Raises `DependencyError` when the database does not answer.
    """
    violations: list[Violation] = []
    with translated_errors(), database.client.start_session(snapshot=True) as session:
        for rule in _RULES:
            for violation in rule(database, session):
                violations.append(violation)
                if len(violations) == MAX_VIOLATIONS:
                    return violations
    return violations


def _ledger_equals_lots(database: MongoDatabase, session: Session) -> Iterator[Violation]:
    ledger = _sums(database, session, LEDGER, "organizationId", "amount")
    lots = _sums(database, session, LOTS, "organizationId", "remaining")
    overdrafts = _sums(database, session, ACCOUNTS, "_id", "overdraft")
    for organization in sorted(ledger.keys() | lots.keys() | overdrafts.keys()):
        left = ledger.get(organization, 0)
        remaining, overdraft = lots.get(organization, 0), overdrafts.get(organization, 0)
        if left != remaining - overdraft:
            yield Violation(
                "the ledger's sum is what the lots have left, less the overdraft",
                organization,
                f"ledger {left}, lots {remaining}, overdraft {overdraft}",
            )
        if overdraft < 0:
            yield Violation("an overdraft is never negative", organization, f"{overdraft}")


def _lots_match_their_entries(database: MongoDatabase, session: Session) -> Iterator[Violation]:
    pipeline: list[dict[str, Any]] = [{"$group": {"_id": "$lotId", "sum": {"$sum": "$amount"}}}]
    sums = {row["_id"]: row["sum"] for row in database[LEDGER].aggregate(pipeline, session=session)}
    for lot in database[LOTS].find({}, session=session):
        remaining, amount, repaid = lot["remaining"], lot["amount"], lot.get("overdraftRepaid", 0)
        if not 0 <= remaining <= amount:
            yield Violation("a lot holds between nothing and its amount", lot["_id"], f"{remaining} of {amount}")
        if sums.get(lot["_id"], 0) - repaid != remaining:
            yield Violation(
                "a lot's entries explain what it has left",
                lot["_id"],
                f"entries {sums.get(lot['_id'], 0)}, repaid {repaid}, remaining {remaining}",
            )


def _overdrafts_match_their_entries(database: MongoDatabase, session: Session) -> Iterator[Violation]:
    overdrawn = _sums(database, session, LEDGER, "organizationId", "amount", {"kind": EntryKind.OVERDRAFT.value})
    repaid = _sums(database, session, LOTS, "organizationId", "overdraftRepaid")
    overdrafts = _sums(database, session, ACCOUNTS, "_id", "overdraft")
    for organization in sorted(overdrawn.keys() | repaid.keys() | overdrafts.keys()):
        expected = -overdrawn.get(organization, 0) - repaid.get(organization, 0)
        if overdrafts.get(organization, 0) != expected:
            yield Violation(
                "an overdraft is what was overdrawn and not repaid",
                organization,
                f"{overdrafts.get(organization, 0)}, expected {expected}",
            )


def _interviews_are_charged_once(database: MongoDatabase, session: Session) -> Iterator[Violation]:
    pipeline: list[dict[str, Any]] = [
        {"$match": {"interviewId": {"$exists": True}}},
        {
            "$group": {
                "_id": "$interviewId",
                "charged": {"$sum": {"$multiply": ["$amount", -1]}},
                "organizations": {"$addToSet": "$organizationId"},
            }
        },
    ]
    entries = {row["_id"]: row for row in database[LEDGER].aggregate(pipeline, session=session)}
    fields = ("status", "organizationId", "credits", "settledAt", "retentionExpiresAt")
    for interview in database[INTERVIEWS].find({}, dict.fromkeys(fields, True), session=session):
        row = entries.pop(interview["_id"], None)
        yield from _interview_faults(interview, row)
    for interview_id in sorted(entries):
        yield Violation("a ledger entry belongs to an interview", interview_id, "no such interview")


def _interview_faults(interview: dict[str, Any], row: dict[str, Any] | None) -> Iterator[Violation]:
    interview_id: str = interview["_id"]
    consumed, required = interview["credits"].get("consumed"), interview["credits"]["required"]
    charged = row["charged"] if row else 0
    if interview.get("settledAt") is None:
        if row is not None or consumed is not None:
            yield Violation("an unsettled interview is not charged", interview_id, f"{charged} charged")
        return
    if charged != consumed:
        yield Violation(
            "a settled interview has the entries it says it consumed", interview_id, f"{charged}, not {consumed}"
        )
    if row is not None and row["organizations"] != [interview["organizationId"]]:
        yield Violation("an interview is charged to its organization", interview_id, f"{row['organizations']}")
    if interview.get("retentionExpiresAt") is None:
        yield Violation("a settled interview says how long it is kept", interview_id, "retentionExpiresAt is missing")
    if not InterviewStatus(interview["status"]).is_terminal:
        yield Violation("a settled interview has ended", interview_id, interview["status"])
    if interview["status"] == InterviewStatus.COMPLETED.value and consumed != required:
        yield Violation("a completed interview consumed what it requires", interview_id, f"{consumed} of {required}")


def _sums(
    database: MongoDatabase,
    session: Session,
    collection: str,
    key: str,
    field: str,
    match: dict[str, Any] | None = None,
) -> dict[str, int]:
    pipeline: list[dict[str, Any]] = [
        {"$match": match or {}},
        {"$group": {"_id": f"${key}", "sum": {"$sum": f"${field}"}}},
    ]
    return {row["_id"]: row["sum"] for row in database[collection].aggregate(pipeline, session=session)}


_RULES: tuple[Callable[[MongoDatabase, Session], Iterator[Violation]], ...] = (
    _ledger_equals_lots,
    _lots_match_their_entries,
    _overdrafts_match_their_entries,
    _interviews_are_charged_once,
)
