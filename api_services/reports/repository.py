"""Reports in MongoDB: who may write one is decided by a claim with a lease, and whoever lost it changes nothing."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal

from pymongo import ASCENDING, IndexModel, ReturnDocument

from api_services.errors import ConflictError
from api_services.llm.costs import TokenUsage
from api_services.mongo import DUPLICATE_KEY, Indexes, MongoDatabase, MongoDocument, translated_errors
from api_services.reports.models import (
    ATTEMPTS_EXHAUSTED,
    MAX_ATTEMPTS,
    Report,
    ReportContent,
    ReportStatus,
    StoredAnswer,
)

REPORTS: Final = "reports"
ANSWERS: Final = "reportAnswers"

ANSWER_RETENTION_SECONDS: Final = 30 * 24 * 3600

INDEXES: Indexes = {
    REPORTS: [
        # Also held by `_id`, from the first write on; this one names the rule for data that came from elsewhere.
        IndexModel([("interviewId", ASCENDING)], name="one_per_interview", unique=True),
        IndexModel(
            [("leaseExpiresAt", ASCENDING), ("_id", ASCENDING)],
            name="leases",
            partialFilterExpression={"status": ReportStatus.PROCESSING.value},
        ),
    ],
    ANSWERS: [IndexModel([("createdAt", ASCENDING)], name="expiry", expireAfterSeconds=ANSWER_RETENTION_SECONDS)],
}


@dataclass(frozen=True, slots=True)
class ReportClaim:
    """The right to write a report until the lease expires; `token` tells this claim from later ones."""

    interview_id: str
    token: str
    attempt: int

    @property
    def is_last(self) -> bool:
        return self.attempt >= MAX_ATTEMPTS


@dataclass(frozen=True, slots=True)
class Unclaimed:
    """Why a report cannot be claimed; `lease_expires_at` where someone else writes it."""

    reason: Literal["completed", "failed", "leased"]
    lease_expires_at: datetime | None = None


class ReportRepository:
    """Reads and writes reports and the answers they rest on; raises typed errors only."""

    def __init__(self, database: MongoDatabase) -> None:
        self._reports = database[REPORTS]
        self._answers = database[ANSWERS]

    def get(self, interview_id: str) -> Report | None:
        with translated_errors():
            document = self._reports.find_one({"interviewId": interview_id})
        return None if document is None else Report.model_validate(document)

    def claim(
        self, interview_id: str, organization_id: str, *, now: datetime, lease_expires_at: datetime
    ) -> ReportClaim | Unclaimed:
        """Take the report for one attempt, making it where there is none; or say why not.

        A report whose attempts are used up, or whose writer died with the last of them, is FAILED after this.
        """
        token = secrets.token_hex(8)
        claimable = {
            "interviewId": interview_id,
            "attemptCount": {"$lt": MAX_ATTEMPTS},
            "$or": [
                {"status": ReportStatus.NOT_STARTED.value},
                {"status": ReportStatus.FAILED.value, "failureIsFinal": {"$ne": True}},
                {"status": ReportStatus.PROCESSING.value, "leaseExpiresAt": {"$not": {"$gt": now}}},
            ],
        }
        change = {
            "$set": {
                "status": ReportStatus.PROCESSING.value,
                "leaseExpiresAt": lease_expires_at,
                "leaseToken": token,
            },
            "$inc": {"attemptCount": 1},
            "$setOnInsert": {"_id": interview_id, "organizationId": organization_id, "createdAt": now},
        }
        try:
            with translated_errors():
                claimed: MongoDocument | None = self._reports.find_one_and_update(
                    claimable, change, upsert=True, return_document=ReturnDocument.AFTER
                )
        except ConflictError as exc:
            if exc.code != DUPLICATE_KEY:
                raise
            return self._unclaimed(interview_id, now)
        if claimed is None:
            raise AssertionError("an upsert that returns the document after it always has one")
        return ReportClaim(interview_id, token, claimed["attemptCount"])

    def complete(
        self,
        claim: ReportClaim,
        content: ReportContent,
        *,
        model: str,
        usage: TokenUsage,
        cost_micro_usd: int,
        now: datetime,
    ) -> bool:
        """Store the finished report; false when the claim was lost, and nothing was changed."""
        change: MongoDocument = {
            "status": ReportStatus.COMPLETED.value,
            "content": content.model_dump(by_alias=True),
            "model": model,
            "completedAt": now,
        }
        return self._finish(claim, change, usage, cost_micro_usd)

    def fail(
        self,
        claim: ReportClaim,
        failure_code: str,
        *,
        detail: str | None = None,
        final: bool = True,
        count_attempt: bool = True,
        usage: TokenUsage | None = None,
        cost_micro_usd: int = 0,
    ) -> bool:
        """Mark the report as FAILED; a final failure is not claimed again until it is reset."""
        change: MongoDocument = {
            "status": ReportStatus.FAILED.value,
            "failureCode": failure_code,
            "failureDetail": detail,
            "failureIsFinal": final,
        }
        return self._finish(claim, change, usage, cost_micro_usd, attempts=0 if count_attempt else -1)

    def release(
        self,
        claim: ReportClaim,
        failure_code: str,
        *,
        count_attempt: bool = True,
        usage: TokenUsage | None = None,
        cost_micro_usd: int = 0,
    ) -> bool:
        """Give the report back for the next attempt."""
        change: MongoDocument = {"status": ReportStatus.NOT_STARTED.value, "failureCode": failure_code}
        return self._finish(claim, change, usage, cost_micro_usd, attempts=0 if count_attempt else -1)

    def reset(self, interview_id: str, *, now: datetime) -> bool:
        """Make a report that is neither finished nor being written as if it had never been tried."""
        with translated_errors():
            result = self._reports.update_one(
                {
                    "interviewId": interview_id,
                    "$or": [
                        {"status": {"$in": [ReportStatus.NOT_STARTED.value, ReportStatus.FAILED.value]}},
                        {"status": ReportStatus.PROCESSING.value, "leaseExpiresAt": {"$not": {"$gt": now}}},
                    ],
                },
                {
                    "$set": {"status": ReportStatus.NOT_STARTED.value, "attemptCount": 0},
                    "$unset": dict.fromkeys(
                        ("failureCode", "failureDetail", "failureIsFinal", "leaseExpiresAt", "leaseToken"), ""
                    ),
                },
            )
        return result.matched_count == 1

    def with_expired_lease(self, *, now: datetime, not_enqueued_since: datetime, limit: int) -> list[str]:
        """Interviews whose report's writer is gone, and not enqueued since; the longest gone first."""
        with translated_errors():
            documents = self._reports.find(
                {
                    "status": ReportStatus.PROCESSING.value,
                    "leaseExpiresAt": {"$lte": now},
                    "enqueuedAt": {"$not": {"$gte": not_enqueued_since}},
                },
                {"interviewId": True},
                sort=[("leaseExpiresAt", ASCENDING), ("_id", ASCENDING)],
                limit=limit,
            )
            return [document["interviewId"] for document in documents]

    def mark_enqueued(self, interview_ids: Sequence[str], at: datetime) -> None:
        """Keep the reconciler from sending these again for a while."""
        with translated_errors():
            self._reports.update_many({"interviewId": {"$in": list(interview_ids)}}, {"$set": {"enqueuedAt": at}})

    def failed(self, *, limit: int) -> list[Report]:
        """Reports that wait for an operator."""
        with translated_errors():
            documents = self._reports.find({"status": ReportStatus.FAILED.value}, sort=[("_id", 1)], limit=limit)
            return [Report.model_validate(document) for document in documents]

    def stored_answer(self, key: str) -> StoredAnswer | None:
        with translated_errors():
            document = self._answers.find_one({"_id": key})
        return None if document is None else StoredAnswer.model_validate(document)

    def store_answer(self, key: str, answer: StoredAnswer) -> None:
        """Keep the answer for 30 days; the first one stored under a key stays."""
        with translated_errors():
            self._answers.update_one({"_id": key}, {"$setOnInsert": answer.model_dump(by_alias=True)}, upsert=True)

    def _unclaimed(self, interview_id: str, now: datetime) -> Unclaimed:
        report = self.get(interview_id)
        if report is None:
            # It was made and removed between two operations: as good as someone else's.
            return Unclaimed("leased", now)
        if report.status is ReportStatus.COMPLETED:
            return Unclaimed("completed")
        lease_expires_at = report.lease_expires_at
        if report.status is ReportStatus.PROCESSING and lease_expires_at is not None and lease_expires_at > now:
            return Unclaimed("leased", lease_expires_at)
        if report.attempt_count < MAX_ATTEMPTS and report.status is not ReportStatus.FAILED:
            # Released between our claim and our look.
            return Unclaimed("leased", now)
        with translated_errors():
            self._reports.update_one(
                {
                    "interviewId": interview_id,
                    "attemptCount": {"$gte": MAX_ATTEMPTS},
                    "$or": [
                        {"status": ReportStatus.NOT_STARTED.value},
                        {"status": ReportStatus.PROCESSING.value, "leaseExpiresAt": {"$not": {"$gt": now}}},
                    ],
                },
                {
                    "$set": {
                        "status": ReportStatus.FAILED.value,
                        "failureCode": ATTEMPTS_EXHAUSTED,
                        "failureIsFinal": True,
                    },
                    "$unset": {"leaseExpiresAt": "", "leaseToken": ""},
                },
            )
        return Unclaimed("failed")

    def _finish(
        self,
        claim: ReportClaim,
        change: MongoDocument,
        usage: TokenUsage | None,
        cost_micro_usd: int,
        attempts: int = 0,
    ) -> bool:
        spent = usage or TokenUsage()
        unset = {"leaseExpiresAt": "", "leaseToken": ""}
        if change["status"] == ReportStatus.COMPLETED.value:
            unset |= {"failureCode": "", "failureDetail": "", "failureIsFinal": ""}
        increments: dict[str, Any] = {
            "attemptCount": attempts,
            "usage.inputTokens": spent.input_tokens,
            "usage.cachedInputTokens": spent.cached_input_tokens,
            "usage.outputTokens": spent.output_tokens,
            "costMicroUsd": cost_micro_usd,
        }
        with translated_errors():
            result = self._reports.update_one(
                {"interviewId": claim.interview_id, "leaseToken": claim.token},
                {"$set": change, "$unset": unset, "$inc": increments},
            )
        return result.matched_count == 1
