"""Interviews in MongoDB. A terminal status is never overwritten: every change of status filters on the old one."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from pymongo import ASCENDING, IndexModel, ReturnDocument, UpdateOne

from api_services.errors import NotFoundError
from api_services.interviews.models import (
    Interview,
    InterviewStatus,
    Proctoring,
    Transcript,
    stored,
)
from api_services.mongo import Indexes, MongoDatabase, MongoDocument, Session, translated_errors

INTERVIEWS: Final = "interviews"
TRANSCRIPTS: Final = "transcripts"
PROCTORING: Final = "proctoring"

INDEXES: Indexes = {
    INTERVIEWS: [
        # For the reconciler: what ended and is not settled, and what is settled and waits for its report.
        IndexModel([("settledAt", ASCENDING), ("endedAt", ASCENDING), ("_id", ASCENDING)], name="unsettled"),
        IndexModel(
            [("settledAt", ASCENDING), ("_id", ASCENDING)],
            name="report_pending",
            partialFilterExpression={"reportPending": True},
        ),
    ],
}


@dataclass(frozen=True, slots=True)
class SettlementState:
    """What decides how an interview is settled; read inside the transaction that settles it."""

    interview_id: str
    organization_id: str
    status: InterviewStatus
    required: int
    ended_at: datetime | None
    failure_code: str | None
    settled: bool


@dataclass(frozen=True, slots=True)
class Claim:
    """The right, won once, to charge an interview."""

    interview_id: str
    organization_id: str
    status: InterviewStatus
    consumed: int
    ended_at: datetime

    @property
    def report_due(self) -> bool:
        return self.status is InterviewStatus.COMPLETED


class InterviewRepository:
    """Reads and writes interviews, transcripts and proctoring data; raises typed errors only."""

    def __init__(self, database: MongoDatabase) -> None:
        self._interviews = database[INTERVIEWS]
        self._transcripts = database[TRANSCRIPTS]
        self._proctoring = database[PROCTORING]

    def insert(self, interview: Interview) -> None:
        """Store a new interview; `ConflictError` when its id exists."""
        document = interview.model_dump(by_alias=True)
        document["_id"] = document.pop("interviewId")
        with translated_errors():
            self._interviews.insert_one(document)

    def get(self, interview_id: str) -> Interview:
        """The interview; `NotFoundError` when there is none."""
        with translated_errors():
            document = self._interviews.find_one({"_id": interview_id})
        if document is None:
            raise NotFoundError(f"There is no interview '{interview_id}'", interview_id=interview_id)
        return _interview(document)

    def end(
        self, interview_id: str, status: InterviewStatus, *, ended_at: datetime, failure_code: str | None
    ) -> Interview | None:
        """Give a running interview its terminal status; none when it does not run (or does not exist)."""
        with translated_errors():
            document = self._interviews.find_one_and_update(
                {"_id": interview_id, "status": InterviewStatus.CREATED},
                {"$set": {"status": status, "endedAt": ended_at, "failureCode": failure_code, "enqueuedAt": ended_at}},
                return_document=ReturnDocument.AFTER,
            )
        return None if document is None else _interview(document)

    def put_transcript(self, interview_id: str, transcript: Transcript) -> None:
        """Store the transcript in place of an earlier one."""
        with translated_errors():
            self._transcripts.replace_one({"_id": interview_id}, stored(transcript), upsert=True)

    def put_proctoring(self, interview_id: str, proctoring: Proctoring) -> None:
        """Store the proctoring data in place of earlier ones."""
        with translated_errors():
            self._proctoring.replace_one({"_id": interview_id}, stored(proctoring), upsert=True)

    def transcript(self, interview_id: str) -> Transcript | None:
        with translated_errors():
            document = self._transcripts.find_one({"_id": interview_id}, {"_id": False})
        return None if document is None else Transcript.model_validate(document)

    def proctoring(self, interview_id: str) -> Proctoring | None:
        with translated_errors():
            document = self._proctoring.find_one({"_id": interview_id}, {"_id": False})
        return None if document is None else Proctoring.model_validate(document)

    def claim_completed(
        self, interview_id: str, *, ended_at: datetime, now: datetime, retention: timedelta, session: Session
    ) -> Claim | None:
        """Mark a completed interview as settled and charged; none when it is settled, or is no completed interview.

        `ended_at` is used where none is stored. To be called inside a transaction.
        """
        ended = {"$ifNull": ["$endedAt", ended_at]}
        document = self._interviews.find_one_and_update(
            {"_id": interview_id, "settledAt": None, "status": InterviewStatus.COMPLETED.value},
            [
                {
                    "$set": {
                        "settledAt": now,
                        "credits.consumed": "$credits.required",
                        "retentionExpiresAt": {"$add": [ended, int(retention.total_seconds() * 1000)]},
                        "reportPending": True,
                    }
                }
            ],
            projection={"organizationId": True, "endedAt": True, "credits.consumed": True},
            return_document=ReturnDocument.AFTER,
            session=session,
        )
        if document is None:
            return None
        return Claim(
            interview_id,
            document["organizationId"],
            InterviewStatus.COMPLETED,
            document["credits"]["consumed"],
            document.get("endedAt") or ended_at,
        )

    def settlement_states(self, interview_ids: Sequence[str], session: Session) -> dict[str, SettlementState]:
        """What settlement must know of each interview that exists, by id. To be called inside a transaction."""
        documents = self._interviews.find(
            {"_id": {"$in": list(interview_ids)}},
            {
                "organizationId": True,
                "status": True,
                "credits.required": True,
                "endedAt": True,
                "failureCode": True,
                "settledAt": True,
            },
            limit=len(interview_ids),
            session=session,
        )
        return {
            document["_id"]: SettlementState(
                interview_id=document["_id"],
                organization_id=document["organizationId"],
                status=InterviewStatus(document["status"]),
                required=document["credits"]["required"],
                ended_at=document.get("endedAt"),
                failure_code=document.get("failureCode"),
                settled=document.get("settledAt") is not None,
            )
            for document in documents
        }

    def claim_all(self, claims: Sequence[Claim], *, now: datetime, retention: timedelta, session: Session) -> int:
        """Mark each as settled and charged unless it is; how many were. To be called inside a transaction."""
        changes = [
            UpdateOne(
                {"_id": claim.interview_id, "settledAt": None, "status": claim.status.value},
                {
                    "$set": {
                        "settledAt": now,
                        "credits.consumed": claim.consumed,
                        "retentionExpiresAt": claim.ended_at + retention,
                        **({"reportPending": True} if claim.report_due else {}),
                    }
                },
            )
            for claim in claims
        ]
        return self._interviews.bulk_write(changes, session=session).modified_count

    def unsettled(self, *, ended_before: datetime, limit: int) -> list[Interview]:
        """Ended before that moment, not settled and not enqueued since; the longest ended first."""
        query = {"settledAt": None, "endedAt": {"$lt": ended_before}, "enqueuedAt": _not_since(ended_before)}
        return self._page(query, [("endedAt", ASCENDING), ("_id", ASCENDING)], limit)

    def awaiting_report(self, *, settled_before: datetime, limit: int) -> list[Interview]:
        """Completed and settled before that moment, without a report and not enqueued for one since."""
        query = {
            "reportPending": True,
            "settledAt": {"$lt": settled_before},
            "reportEnqueuedAt": _not_since(settled_before),
        }
        return self._page(query, [("settledAt", ASCENDING), ("_id", ASCENDING)], limit)

    def mark_enqueued(self, interview_ids: Sequence[str], at: datetime) -> None:
        """Keep the reconciler from sending these again for a while."""
        self._mark(interview_ids, "enqueuedAt", at)

    def mark_report_enqueued(self, interview_ids: Sequence[str], at: datetime) -> None:
        """Keep the reconciler from sending these again for a while."""
        self._mark(interview_ids, "reportEnqueuedAt", at)

    def set_report_pending(self, interview_id: str, *, pending: bool) -> None:
        """Say whether the reconciler should see to this interview's report."""
        change = {"$set": {"reportPending": True}} if pending else {"$unset": {"reportPending": ""}}
        with translated_errors():
            self._interviews.update_one({"_id": interview_id}, change)

    def _page(self, query: dict[str, Any], order: list[tuple[str, int]], limit: int) -> list[Interview]:
        with translated_errors():
            return [_interview(document) for document in self._interviews.find(query, sort=order, limit=limit)]

    def _mark(self, interview_ids: Sequence[str], field: str, at: datetime) -> None:
        with translated_errors():
            self._interviews.update_many({"_id": {"$in": list(interview_ids)}}, {"$set": {field: at}})


def _not_since(moment: datetime) -> dict[str, Any]:
    """Unset, or earlier than `moment`."""
    return {"$not": {"$gte": moment}}


def _interview(document: MongoDocument) -> Interview:
    return Interview.model_validate({**document, "interviewId": document["_id"]})
