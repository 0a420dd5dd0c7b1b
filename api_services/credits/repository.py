"""Lots, ledger and overdrafts in MongoDB.

Every unique key is a document's `_id`, so none depends on an index having been made before the first write:
a lot's is derived from the grant's key, an entry's from its interview and lot.
"""

import hashlib
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Final, TypeVar

from pymongo import ASCENDING, DESCENDING, IndexModel, ReturnDocument, UpdateOne

from api_services.credits.allocation import Charge, Draw, OpenLot
from api_services.credits.models import NEVER, Balance, CreditLot, EntryKind, LedgerEntry
from api_services.entities import Page
from api_services.errors import BusyError
from api_services.mongo import Indexes, MongoDatabase, MongoDocument, Session, run_in_transaction, translated_errors
from api_services.paging import decode_cursor, encode_cursor

LOTS: Final = "creditLots"
LEDGER: Final = "ledgerEntries"
ACCOUNTS: Final = "creditAccounts"

_LOTS_AT_ONCE: Final = 100

DRAWING_ORDER: Final = [("expiryOrder", ASCENDING), ("grantedAt", ASCENDING), ("_id", ASCENDING)]
"""As `allocation.allocate` orders them."""

T = TypeVar("T")

INDEXES: Indexes = {
    LOTS: [
        IndexModel(
            [("organizationId", ASCENDING), *DRAWING_ORDER],
            name="drawing_order",
            partialFilterExpression={"remaining": {"$gt": 0}},
        ),
        IndexModel(
            [("organizationId", ASCENDING), ("grantedAt", DESCENDING), ("_id", DESCENDING)], name="newest_first"
        ),
    ],
    LEDGER: [
        IndexModel(
            [("organizationId", ASCENDING), ("createdAt", DESCENDING), ("_id", DESCENDING)], name="newest_first"
        ),
    ],
}


def lot_id_for(organization_id: str, idempotency_key: str) -> str:
    """The id of the lot that this grant makes, however often it is asked for."""
    return hashlib.sha256(f"{organization_id}\n{idempotency_key}".encode()).hexdigest()[:32]


class CreditRepository:
    """Reads and writes credits. Methods with a session belong inside a transaction and let the driver's errors pass."""

    def __init__(self, database: MongoDatabase) -> None:
        self._database = database
        self._lots = database[LOTS]
        self._ledger = database[LEDGER]
        self._accounts = database[ACCOUNTS]

    def in_transaction(self, callback: Callable[[Session], T], *, timeout_seconds: float) -> T:
        """`run_in_transaction` on this repository's database."""
        return run_in_transaction(self._database, callback, timeout_seconds=timeout_seconds)

    def find_lot(self, lot_id: str, session: Session) -> CreditLot | None:
        document = self._lots.find_one({"_id": lot_id}, session=session)
        return None if document is None else _lot(document)

    def repay_overdraft(self, organization_id: str, up_to: int, session: Session) -> int:
        """Take at most `up_to` off what the organization owes; how much that was.

        Writes the account even when nothing is owed, so that a settlement running into a shortage at the same
        moment conflicts with the grant and sees its lot when it runs again.
        """
        account = self._accounts.find_one_and_update(
            {"_id": organization_id},
            {"$inc": {"grants": 1}},
            upsert=True,
            return_document=ReturnDocument.AFTER,
            session=session,
        )
        repaid = min(up_to, int((account or {}).get("overdraft", 0)))
        if repaid:
            self._accounts.update_one({"_id": organization_id}, {"$inc": {"overdraft": -repaid}}, session=session)
        return repaid

    def insert_grant(self, lot: CreditLot, session: Session) -> None:
        """Store the lot and its ledger entry."""
        document = lot.model_dump(by_alias=True)
        document["_id"] = document.pop("lotId")
        document["expiryOrder"] = lot.expires_at or NEVER
        self._lots.insert_one(document, session=session)
        self._ledger.insert_one(
            {
                "_id": f"grant:{lot.lot_id}",
                "organizationId": lot.organization_id,
                "kind": EntryKind.GRANT.value,
                "amount": lot.amount,
                "lotId": lot.lot_id,
                "createdAt": lot.granted_at,
            },
            session=session,
        )

    def draw_soonest(self, organization_id: str, charge: Charge, session: Session) -> Draw | None:
        """Read and draw in one operation the lot that pays first for `charge`; none where no lot does.

        One operation less than reading and drawing, and one lot pays most interviews. It may not hold enough.
        """
        drawn = self._lots.find_one_and_update(
            {
                "organizationId": organization_id,
                "remaining": {"$gt": 0},
                "expiryOrder": {"$gt": charge.ended_at},
            },
            [{"$set": {"remaining": {"$max": [0, {"$subtract": ["$remaining", charge.credits]}]}}}],
            {"remaining": True},
            sort=DRAWING_ORDER,
            return_document=ReturnDocument.BEFORE,
            session=session,
        )
        return (
            None if drawn is None else Draw(charge.interview_id, drawn["_id"], min(drawn["remaining"], charge.credits))
        )

    def open_lots(
        self, organization_id: str, *, alive_after: datetime, all_alive_after: datetime, enough: int, session: Session
    ) -> list[OpenLot]:
        """Lots in drawing order that had not expired at `alive_after`.

        Stops reading once those not expired at `all_alive_after` hold `enough` credits.
        """
        lots: list[OpenLot] = []
        usable = 0
        while True:
            page = list(
                self._lots.find(
                    {
                        "organizationId": organization_id,
                        "remaining": {"$gt": 0},
                        "expiryOrder": {"$gt": alive_after},
                    },
                    {"remaining": True, "expiryOrder": True, "grantedAt": True},
                    sort=DRAWING_ORDER,
                    skip=len(lots),
                    limit=_LOTS_AT_ONCE,
                    session=session,
                )
            )
            for document in page:
                lot = OpenLot(document["_id"], document["remaining"], document["expiryOrder"], document["grantedAt"])
                lots.append(lot)
                usable += lot.remaining if lot.expiry_order > all_alive_after else 0
            if usable >= enough or len(page) < _LOTS_AT_ONCE:
                return lots

    def record_draws(
        self,
        organization_id: str,
        draws: Sequence[Draw],
        *,
        drawn: Draw | None = None,
        now: datetime,
        session: Session,
    ) -> None:
        """Take the draws off their lots, add what is owed to the overdraft, and write one ledger entry for each.

        `drawn` has been taken off its lot already, and gets its entry only.
        """
        taken: dict[str, int] = {}
        owed = 0
        entries = [] if drawn is None else [_consumption(organization_id, drawn, now)]
        for draw in draws:
            if draw.lot_id is None:
                owed += draw.credits
            else:
                taken[draw.lot_id] = taken.get(draw.lot_id, 0) + draw.credits
            entries.append(_consumption(organization_id, draw, now))
        if len(taken) == 1:
            ((lot_id, credits),) = taken.items()
            changed = self._lots.update_one(*_draw(lot_id, credits), session=session).modified_count
        elif taken:
            changed = self._lots.bulk_write(
                [UpdateOne(*_draw(lot_id, credits)) for lot_id, credits in taken.items()], session=session
            ).modified_count
        else:
            changed = 0
        if changed != len(taken):
            raise BusyError("A credit lot changed while it was drawn", organization_id=organization_id)
        if owed:
            self._accounts.update_one(
                {"_id": organization_id}, {"$inc": {"overdraft": owed}}, upsert=True, session=session
            )
        if len(entries) == 1:
            self._ledger.insert_one(entries[0], session=session)
        elif entries:
            self._ledger.insert_many(entries, session=session)

    def balance(self, organization_id: str, *, now: datetime) -> Balance:
        """Sums over the organization's lots and what it owes; zeros for one that nobody granted anything."""
        alive = {"$gt": ["$expiryOrder", now]}
        pipeline: list[dict[str, Any]] = [
            {"$match": {"organizationId": organization_id, "remaining": {"$gt": 0}}},
            {
                "$group": {
                    "_id": None,
                    "available": {"$sum": {"$cond": [alive, "$remaining", 0]}},
                    "expired": {"$sum": {"$cond": [alive, 0, "$remaining"]}},
                }
            },
        ]
        with translated_errors():
            sums = next(iter(self._lots.aggregate(pipeline)), {"available": 0, "expired": 0})
            account = self._accounts.find_one({"_id": organization_id})
        return Balance(
            organization_id=organization_id,
            available=sums["available"],
            expired=sums["expired"],
            overdraft=(account or {}).get("overdraft", 0),
        )

    def lots(self, organization_id: str, *, limit: int, cursor: str | None) -> Page[CreditLot]:
        """The organization's lots, newest first."""
        with translated_errors():
            documents = list(
                self._lots.find(
                    {"organizationId": organization_id, **_older_than("grantedAt", cursor)},
                    sort=[("grantedAt", DESCENDING), ("_id", DESCENDING)],
                    limit=limit + 1,
                )
            )
        return Page(
            items=[_lot(document) for document in documents[:limit]],
            next_cursor=_next_cursor("grantedAt", documents, limit),
        )

    def ledger(self, organization_id: str, *, limit: int, cursor: str | None) -> Page[LedgerEntry]:
        """The organization's ledger, newest first."""
        with translated_errors():
            documents = list(
                self._ledger.find(
                    {"organizationId": organization_id, **_older_than("createdAt", cursor)},
                    sort=[("createdAt", DESCENDING), ("_id", DESCENDING)],
                    limit=limit + 1,
                )
            )
        return Page(
            items=[_entry(document) for document in documents[:limit]],
            next_cursor=_next_cursor("createdAt", documents, limit),
        )


def _consumption(organization_id: str, draw: Draw, now: datetime) -> MongoDocument:
    kind = EntryKind.OVERDRAFT if draw.lot_id is None else EntryKind.CONSUMPTION
    return {
        "_id": f"{draw.interview_id}:{draw.lot_id or 'overdraft'}",
        "organizationId": organization_id,
        "kind": kind.value,
        "amount": -draw.credits,
        "lotId": draw.lot_id,
        "interviewId": draw.interview_id,
        "createdAt": now,
    }


def _draw(lot_id: str, credits: int) -> tuple[dict[str, Any], dict[str, Any]]:
    return {"_id": lot_id, "remaining": {"$gte": credits}}, {"$inc": {"remaining": -credits}}


def _older_than(field: str, cursor: str | None) -> dict[str, Any]:
    if cursor is None:
        return {}
    moment, last_id = decode_cursor(cursor)
    return {"$or": [{field: {"$lt": moment}}, {field: moment, "_id": {"$lt": last_id}}]}


def _next_cursor(field: str, documents: Sequence[MongoDocument], limit: int) -> str | None:
    if len(documents) <= limit:
        return None
    last = documents[limit - 1]
    return encode_cursor(last[field], last["_id"])


def _lot(document: MongoDocument) -> CreditLot:
    return CreditLot.model_validate({**document, "lotId": document["_id"]})


def _entry(document: MongoDocument) -> LedgerEntry:
    return LedgerEntry.model_validate({**document, "entryId": document["_id"]})
