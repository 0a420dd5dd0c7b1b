"""Settlements a second by four consumer processes, over four bare loops of the same operations on the same server.

The floor settles one by one over many organizations: claim, read the lot, draw it, write the entry, commit. Sending
the report is in neither.
"""

import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import SecretStr
from typing_extensions import override

from api_services.credits.invariants import check_invariants
from api_services.credits.models import NEVER
from api_services.credits.repository import LOTS
from api_services.credits.settlement import SettlementCollaborators
from api_services.indexes import ensure_all_indexes
from api_services.interviews.messages import InterviewCompleted
from api_services.interviews.repository import INTERVIEWS
from api_services.mongo import MongoDatabase, Session, connect
from api_services.queues import INTERVIEW_COMPLETED, QueueSpec
from api_services.settings import MongoSettings
from api_services.sqs import QueueSender
from benchmarks.harness import Row
from local.mongod import start_mongod

PROCESSES: Final = 4
BATCH: Final = 10
ORGANIZATIONS: Final = 200
ENDED_AT: Final = datetime(2026, 1, 1, tzinfo=UTC)

Contender = Literal["bare", "many", "hot"]


class _NoSender(QueueSender):
    """Sends nothing: what the queue costs is another benchmark's."""

    @override
    def send_batch(
        self,
        spec: QueueSpec[Any],
        messages: Sequence[Any],
        *,
        delay_seconds: int = 0,
        request_ids: Sequence[str | None] | None = None,
    ) -> None:
        return


def run(quick: bool) -> Iterable[Row]:
    """Rounds in which the three take turns; the median of each counts."""
    rounds, interviews = (1, 80) if quick else (3, 1_200)
    rates: dict[Contender, list[float]] = {"bare": [], "many": [], "hot": []}
    with tempfile.TemporaryDirectory(prefix="sophia-bench-") as home:
        mongod = start_mongod(Path(home) / "data", Path(home) / "log", dies_with_parent=True, throwaway=True)
        try:
            for number in range(rounds):
                for contender, measured in rates.items():
                    measured.append(_rate(mongod.uri, f"{contender}-{number}", contender, interviews))
        finally:
            mongod.stop()
    floor = statistics.median(rates["bare"])
    floor_name = "bare one by one, many organizations"
    yield Row(name=f"settled by {PROCESSES} processes: {floor_name}", value=floor, unit="/s")
    contenders: tuple[tuple[Contender, str, float], ...] = (
        ("many", "many organizations", 0.8),
        ("hot", "one hot organization", 1.5),
    )
    for contender, name, target in contenders:
        yield Row(
            name=f"settled by {PROCESSES} consumers: {name}",
            value=statistics.median(rates[contender]),
            unit="/s",
            floor=floor,
            floor_name=floor_name,
            target=target,
            higher_is_better=True,
        )


def _rate(uri: str, database_name: str, contender: Contender, interviews: int) -> float:
    database = _connected(uri, database_name)
    try:
        _fill(database, contender, interviews)
        shares = [range(number, interviews, PROCESSES) for number in range(PROCESSES)]
        context = multiprocessing.get_context("spawn")
        start, end = context.Barrier(PROCESSES + 1), context.Barrier(PROCESSES + 1)
        workers = [
            context.Process(target=_work, args=(uri, database_name, contender, share, start, end), daemon=True)
            for share in shares
        ]
        for worker in workers:
            worker.start()
        start.wait(120)
        began = time.perf_counter()
        end.wait(600)
        seconds = time.perf_counter() - began
        for worker in workers:
            worker.join()
        _check(database, contender)
    finally:
        database.client.drop_database(database.name)
        database.client.close()
    return interviews / seconds


def _work(uri: str, name: str, contender: Contender, share: range, start: Barrier, end: Barrier) -> None:
    database = _connected(uri, name)
    settle_all = _bare(database, share) if contender == "bare" else _consumer(database, contender, share)
    start.wait(120)
    settle_all()
    end.wait(600)


def _consumer(database: MongoDatabase, contender: Contender, share: range) -> Any:
    """The deployed consumer, with everything but the queue."""
    from functions.interview_completed.settle import settle, settle_group
    from functions.platform.sqs_consumer import sqs_consumer

    collaborators = SettlementCollaborators.of(database, _NoSender())
    handler = sqs_consumer(INTERVIEW_COMPLETED, settle, connect=lambda: collaborators, group_handler=settle_group)
    events = [
        {"Records": [_record(number, contender) for number in share[first : first + BATCH]]}
        for first in range(0, len(share), BATCH)
    ]

    def settle_all() -> None:
        for event in events:
            waiting = event
            while waiting["Records"]:
                # A conflict that outlasted its tries is delivered again, as the queue would.
                failed = {each["itemIdentifier"] for each in handler(waiting)["batchItemFailures"]}
                waiting = {"Records": [record for record in waiting["Records"] if record["messageId"] in failed]}

    return settle_all


def _record(number: int, contender: Contender) -> dict[str, Any]:
    message = InterviewCompleted(
        interview_id=f"iv-{number}", organization_id=_organization(number, contender), ended_at=ENDED_AT
    )
    return {
        "messageId": f"m-{number}",
        "receiptHandle": "r",
        "body": message.body(),
        "attributes": {"ApproximateReceiveCount": "1"},
        "messageAttributes": {},
    }


def _bare(database: MongoDatabase, share: range) -> Any:
    interviews, lots, ledger = database[INTERVIEWS], database[LOTS], database["ledgerEntries"]

    def settle(number: int) -> None:
        interview_id, organization = f"iv-{number}", _organization(number, "bare")

        def callback(session: Session) -> None:
            interviews.find_one_and_update(
                {"_id": interview_id, "settledAt": None},
                {
                    "$set": {
                        "settledAt": ENDED_AT,
                        "credits.consumed": 5,
                        "retentionExpiresAt": ENDED_AT + timedelta(days=365),
                    }
                },
                session=session,
            )
            lot = lots.find_one({"organizationId": organization, "remaining": {"$gt": 0}}, session=session)
            if lot is None:
                raise AssertionError("every organization has a lot")
            lots.update_one({"_id": lot["_id"]}, {"$inc": {"remaining": -5}}, session=session)
            ledger.insert_one(
                {
                    "_id": f"{interview_id}:{lot['_id']}",
                    "organizationId": organization,
                    "kind": "CONSUMPTION",
                    "amount": -5,
                    "lotId": lot["_id"],
                    "interviewId": interview_id,
                    "createdAt": ENDED_AT,
                },
                session=session,
            )

        with database.client.start_session() as session:
            session.with_transaction(callback)

    def settle_all() -> None:
        for number in share:
            settle(number)

    return settle_all


def _organization(number: int, contender: Contender) -> str:
    return "org-0" if contender == "hot" else f"org-{number * 7919 % ORGANIZATIONS}"


def _fill(database: MongoDatabase, contender: Contender, interviews: int) -> None:
    """Interviews that have ended, and a lot for each organization that pays for them all."""
    ensure_all_indexes(database)
    organizations = sorted({_organization(number, contender) for number in range(interviews)})
    database[LOTS].insert_many(
        {
            "_id": f"lot-of-{organization}",
            "organizationId": organization,
            "amount": 5 * interviews,
            "remaining": 5 * interviews,
            "grantedAt": ENDED_AT,
            "expiresAt": None,
            "expiryOrder": NEVER,
        }
        for organization in organizations
    )
    database["ledgerEntries"].insert_many(
        {
            "_id": f"grant:lot-of-{organization}",
            "organizationId": organization,
            "kind": "GRANT",
            "amount": 5 * interviews,
            "lotId": f"lot-of-{organization}",
            "createdAt": ENDED_AT,
        }
        for organization in organizations
    )
    database[INTERVIEWS].insert_many(
        {
            "_id": f"iv-{number}",
            "organizationId": _organization(number, contender),
            "status": "COMPLETED",
            "credits": {"required": 5, "consumed": None},
            "createdAt": ENDED_AT,
            "endedAt": ENDED_AT,
            "settledAt": None,
        }
        for number in range(interviews)
    )


def _check(database: MongoDatabase, contender: Contender) -> None:
    """A rate counts only where the work was done."""
    if database[INTERVIEWS].count_documents({"settledAt": None}):
        raise AssertionError(f"{contender}: interviews are left unsettled")
    violations = check_invariants(database)
    if violations:
        raise AssertionError(f"{contender}: {violations[0]}")


def _connected(uri: str, name: str) -> MongoDatabase:
    return connect(MongoSettings(mongo_uri=SecretStr(uri), mongo_database=name))
