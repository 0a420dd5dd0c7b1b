"""What must be true when the dust has settled, computed from the plan and the database alone."""

from dataclasses import dataclass
from typing import Any

from api_services.credits.invariants import check_invariants
from api_services.credits.repository import LEDGER
from api_services.interviews.repository import INTERVIEWS
from api_services.mongo import MongoDatabase
from api_services.reports.models import ReportStatus
from api_services.reports.repository import REPORTS
from benchmarks.torture.plan import Plan


@dataclass(frozen=True, slots=True)
class Check:
    """One assertion with what was expected and found."""

    name: str
    expected: Any
    found: Any

    @property
    def holds(self) -> bool:
        return self.expected == self.found


def verdict(database: MongoDatabase, plan: Plan, depths: dict[str, int], meant_dead: dict[str, int]) -> list[Check]:
    """Every check; `depths` are those of the queues, `meant_dead` what their dead-letter queues should hold."""
    completed = {each.interview_id: each for each in plan.interviews if each.failure_code is None}
    interviews = {document["_id"]: document for document in database[INTERVIEWS].find()}
    reports = list(database[REPORTS].find({}, {"interviewId": True, "status": True}))
    written = [report["interviewId"] for report in reports if report["status"] == ReportStatus.COMPLETED.value]
    charged = {
        row["_id"]: row["charged"]
        for row in database[LEDGER].aggregate(
            [
                {"$match": {"interviewId": {"$exists": True}}},
                {"$group": {"_id": "$interviewId", "charged": {"$sum": {"$multiply": ["$amount", -1]}}}},
            ]
        )
    }
    expected_charges = {
        interview_id: each.credits_required for interview_id, each in completed.items() if each.credits_required
    }
    ledger = {
        row["_id"]: row["sum"]
        for row in database[LEDGER].aggregate([{"$group": {"_id": "$organizationId", "sum": {"$sum": "$amount"}}}])
    }
    return [
        Check("interviews", len(plan.interviews), len(interviews)),
        Check(
            "settled",
            len(plan.interviews),
            sum(1 for document in interviews.values() if document.get("settledAt") is not None),
        ),
        Check("charged once, by what each requires", True, charged == expected_charges),
        Check("credits charged", sum(expected_charges.values()), sum(charged.values())),
        Check("ledgers as granted less charged", True, ledger == _expected_ledgers(plan)),
        Check("reports written", len(completed), len(written)),
        Check("reports of exactly the completed interviews", True, sorted(written) == sorted(completed)),
        Check("violations of the invariants", 0, len(check_invariants(database))),
        *(Check(f"messages in {name}", meant_dead.get(name, 0), depth) for name, depth in depths.items()),
    ]


def _expected_ledgers(plan: Plan) -> dict[str, int]:
    sums: dict[str, int] = {}
    for grant in plan.grants:
        sums[grant.organization_id] = sums.get(grant.organization_id, 0) + grant.amount
    for each in plan.interviews:
        if each.failure_code is None and each.credits_required:
            sums[each.organization_id] = sums.get(each.organization_id, 0) - each.credits_required
    return sums
