"""Documents through consumers that are killed: fed, edited, withdrawn, delivered twice, and judged from the index."""

import random
import tempfile
import time
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from api_services.documents.chunking import chunk
from api_services.documents.index.connect import index_driver, open_index
from api_services.documents.index.driver import Statement
from api_services.documents.messages import IngestDocument
from api_services.documents.models import DocumentFormat, DocumentState
from api_services.documents.normalise import normalise
from api_services.documents.pipeline import CONCURRENCY
from api_services.documents.reconcile import reconcile_index
from api_services.documents.repository import INDEXES, DocumentRepository
from api_services.documents.service import approve_document, upsert_document, withdraw_document
from api_services.documents.settings import IndexSettings
from api_services.errors import AppError
from api_services.mongo import ensure_indexes
from api_services.queues import INGEST
from api_services.sqs import SqsQueueSender
from benchmarks.torture.servers import Servers
from benchmarks.torture.verdict import Check
from toolchain.progress import Progress

CONSUMERS: Final = 3
LATENCY_SECONDS: Final = 0.15
DOCUMENTS_A_KILL: Final = 8
KILL_DELAY_SECONDS: Final = (0.0, 1.5)
"""After the progress at which a kill is due, so that it strikes anywhere in a document's work."""

DUPLICATED: Final = 0.2
EDITED: Final = 0.15
WITHDRAWN: Final = 0.05
EMPTY: Final = 0.03
MALFORMED_ID: Final = "malformed"
CALM_FROM: Final = 0.9
"""Kills end when so many documents are done: the rest must get done by what the kills have left."""

_OPEN: Final = (DocumentState.APPROVED, DocumentState.QUEUED, DocumentState.INDEXING)


@dataclass(frozen=True, slots=True)
class PlannedDocument:
    """Its versions in order; the last stays, unless it is withdrawn."""

    document_id: str
    versions: tuple[bytes, ...]
    duplicates: int
    withdrawn: bool


@dataclass(slots=True)
class DocumentOutcome:
    """The verdict, and the numbers beside it."""

    documents: int
    seed: int
    checks: list[Check] = field(default_factory=list[Check])
    kills: int = 0
    enrichments: int = 0
    enrichments_twice: int = 0
    embeddings: int = 0
    embeddings_twice: int = 0
    redriven: int = 0
    ordered_again: int = 0
    seconds: float = 0.0

    @property
    def holds(self) -> bool:
        return all(check.holds for check in self.checks)


def plan_documents(count: int, seed: int) -> list[PlannedDocument]:
    """The same for the same seed. No passage is in two documents, so that paying twice is never meant."""
    chance = random.Random(seed)  # noqa: S311
    planned: list[PlannedDocument] = []
    for number in range(count):
        document_id = f"document-{number:04}"
        if chance.random() < EMPTY:
            planned.append(PlannedDocument(document_id, (b" \n",), 0, withdrawn=False))
            continue
        sections = [_section(chance, document_id, n) for n in range(chance.randint(1, 9))]
        versions = ["\n".join(sections)]
        if chance.random() < EDITED:
            edited = chance.randrange(len(sections))
            sections[edited] = sections[edited].rstrip() + " One sentence was added later.\n"
            versions.append("\n".join(sections))
        duplicates = chance.randint(1, 2) if chance.random() < DUPLICATED else 0
        withdrawn = chance.random() < WITHDRAWN
        planned.append(PlannedDocument(document_id, tuple(v.encode() for v in versions), duplicates, withdrawn))
    planned.append(PlannedDocument(MALFORMED_ID, (b"\xff\xfe not text",), 0, withdrawn=False))
    chance.shuffle(planned)
    return planned


def _section(chance: random.Random, document_id: str, number: int) -> str:
    words = " ".join(f"w{chance.randrange(3_000)}" for _ in range(chance.randint(170, 260)))
    return f"## {document_id} part {number}\n\n{words}.\n"


def torture_documents(documents: int, seed: int, *, timeout_seconds: float, progress: Progress) -> DocumentOutcome:
    """Run it. Raises `AppError` when a server does not start or the time is over."""
    began = time.monotonic()
    outcome = DocumentOutcome(documents, seed)
    with tempfile.TemporaryDirectory(prefix="sophia-torture-") as home:
        settings = IndexSettings(index_url=f"file:{home}/index/documents.db")
        servers = Servers(
            Path(home),
            {INGEST.name: CONSUMERS},
            queues=(INGEST,),
            consumer_module="benchmarks.torture.documents_consumer",
            settings={"INDEX_URL": settings.index_url},
            llm_latency_seconds=LATENCY_SECONDS,
        )
        with progress.step("start servers and consumers"):
            servers.start()
        with servers:
            run = _DocumentRun(servers, settings, outcome, began + timeout_seconds, progress)
            with progress.step("feed and kill"):
                run.feed_and_kill()
            with progress.step("drain and reconcile"):
                run.drain()
                run.close_gaps()
            with progress.step("judge"):
                run.judge()
    outcome.seconds = time.monotonic() - began
    return outcome


class _DocumentRun:
    def __init__(
        self, servers: Servers, settings: IndexSettings, outcome: DocumentOutcome, deadline: float, progress: Progress
    ) -> None:
        self._servers = servers
        self._settings = settings
        self._outcome = outcome
        self._deadline = deadline
        self._progress = progress
        ensure_indexes(servers.database, INDEXES)
        self._documents = DocumentRepository(servers.database)
        self._sender = SqsQueueSender(servers.queue_urls, lambda: servers.sqs)
        self._plan = plan_documents(outcome.documents, outcome.seed)

    def feed_and_kill(self) -> None:
        """Feed in bursts while consumers die; until most is done."""
        chance = random.Random(self._outcome.seed + 1)  # noqa: S311
        waiting = [(planned, 0) for planned in self._plan]
        later = [(planned, 1) for planned in self._plan if len(planned.versions) > 1]
        burst = max(1, len(waiting) // 10)
        count = max(3, len(self._plan) // DOCUMENTS_A_KILL)
        due_at = sorted(chance.uniform(0.02, CALM_FROM) for _ in range(count))
        withdrawals = [planned for planned in self._plan if planned.withdrawn]
        while waiting or later or withdrawals or self._done() < CALM_FROM:
            self._check_time()
            for planned, version in waiting[:burst]:
                self._publish(planned, version)
            del waiting[:burst]
            if not waiting and later:
                self._publish(*later.pop())
            elif not waiting and withdrawals:
                withdraw_document(self._documents, self._sender, document_id=withdrawals.pop().document_id)
            if due_at and self._done() >= due_at[0]:
                time.sleep(chance.uniform(*KILL_DELAY_SECONDS))
                self._servers.kill_consumer(chance.randrange(CONSUMERS))
                self._outcome.kills += 1
                due_at.pop(0)
            self._progress.note(f"{self._done():.0%} done, {self._outcome.kills} consumers killed")
            time.sleep(0.2)

    def drain(self) -> None:
        """Until the queue is empty and stays so."""
        empty_since: float | None = None
        while empty_since is None or time.monotonic() - empty_since < 1.0:
            self._check_time()
            if self._servers.depths()[INGEST.url_env_key]:
                empty_since = None
            elif empty_since is None:
                empty_since = time.monotonic()
            time.sleep(0.2)

    def close_gaps(self) -> None:
        """What the hourly job and an operator do, until there is nothing left to do."""
        index = open_index(self._settings)
        try:
            while True:
                self._check_time()
                found = reconcile_index(self._documents, index, self._sender, patience=timedelta(0))
                self._outcome.ordered_again += found.total
                redriven = self._redrive()
                self._outcome.redriven += redriven
                if not found.total and not redriven:
                    return
                self.drain()
        finally:
            index.close()

    def judge(self) -> None:
        """From the plan, the index's tables, the documents' states, the queues and the model's counts."""
        driver = index_driver(self._settings)
        sql = "SELECT document_id, count(DISTINCT generation), count(*) FROM chunks GROUP BY document_id"
        held = {str(row[0]): (row[1], row[2]) for row in driver.read([Statement(sql)])[0]}
        seen = {str(row[0]): row[1] for row in driver.read([Statement(
            "SELECT document_id, count(*) FROM chunks JOIN bits USING (chunk_id) GROUP BY document_id"
        )])[0]}  # fmt: skip
        driver.close()
        expected = {planned.document_id: _expected_chunks(planned) for planned in self._plan}
        wanted = {document_id: (1, chunks) for document_id, chunks in expected.items() if chunks}
        states = {d.document_id: d.state for d in self._documents.all_published()}
        calls = self._servers.llm("GET", "/_control/calls")
        outcome = self._outcome
        by_content = calls["byContent"]
        outcome.enrichments = calls["answered"].get("responses", 0)
        outcome.embeddings = calls["answered"].get("embeddings", 0)
        outcome.enrichments_twice = sum(by_content["responses"].values()) - len(by_content["responses"])
        outcome.embeddings_twice = sum(by_content["embeddings"].values()) - len(by_content["embeddings"])
        depths = self._servers.depths()
        most = max(expected.values())
        outcome.checks += [
            Check("documents with one generation of the approved version's chunks", len(wanted), _same(wanted, held)),
            Check("documents that should not be in the index and are", 0, len(held.keys() - wanted.keys())),
            Check("documents whose chunks are all in search", len(wanted), _same(expected, seen)),
            Check("documents in their final state", len(self._plan), _same(self._final_states(), states)),
            Check("messages in the queue", 0, depths[INGEST.url_env_key]),
            Check("messages in the dead-letter queue", [MALFORMED_ID], self._dead()),
            Check(
                f"enrichments paid twice are at most {CONCURRENCY} a kill",
                True,
                outcome.enrichments_twice <= CONCURRENCY * outcome.kills,
            ),
            Check(
                f"passages embedded twice are at most one batch of {most} a kill",
                True,
                outcome.embeddings_twice <= most * outcome.kills,
            ),
        ]

    def _final_states(self) -> dict[str, DocumentState]:
        states: dict[str, DocumentState] = {}
        for planned in self._plan:
            if planned.document_id == MALFORMED_ID:
                states[planned.document_id] = DocumentState.FAILED
            elif planned.withdrawn:
                states[planned.document_id] = DocumentState.WITHDRAWN
            else:
                chunks = _expected_chunks(planned)
                states[planned.document_id] = DocumentState.INDEXED if chunks else DocumentState.EMPTY
        return states

    def _publish(self, planned: PlannedDocument, version: int) -> None:
        upsert_document(
            self._documents,
            document_id=planned.document_id,
            title=planned.document_id,
            content=planned.versions[version],
        )
        approve_document(self._documents, self._sender, document_id=planned.document_id)
        message = IngestDocument(document_id=planned.document_id, version=version + 1)
        for _ in range(planned.duplicates):
            self._sender.send(INGEST, message)

    def _done(self) -> float:
        database = self._servers.database
        open_states = [state.value for state in _OPEN]
        left = database["documents"].count_documents({"state": {"$in": open_states}})
        published = database["documents"].count_documents({"revision": {"$gt": 0}})
        return (published - left) / len(self._plan)

    def _check_time(self) -> None:
        if time.monotonic() > self._deadline:
            raise AppError(f"The time was over with {self._done():.0%} done", code="torture_timeout")
        if self._servers.dead_consumers():
            raise AppError("A consumer ended by itself; see its log", code="torture_consumer_ended")

    def _redrive(self) -> int:
        """Move back what died of its receives."""
        url = self._servers.queue_urls[INGEST.dlq_url_env_key]
        moved = 0
        for message in self._letters():
            body = IngestDocument.model_validate_json(message["Body"])
            if body.document_id == MALFORMED_ID:
                continue
            self._sender.send(INGEST, body)
            self._servers.sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
            moved += 1
        return moved

    def _dead(self) -> list[str]:
        return sorted(IngestDocument.model_validate_json(each["Body"]).document_id for each in self._letters())

    def _letters(self) -> list[Any]:
        url = self._servers.queue_urls[INGEST.dlq_url_env_key]
        found: dict[str, Any] = {}
        while True:
            answer: Any = self._servers.sqs.receive_message(
                QueueUrl=url, MaxNumberOfMessages=10, VisibilityTimeout=1, MessageAttributeNames=["All"]
            )
            fresh = {each["MessageId"]: each for each in answer.get("Messages", [])}
            if not fresh.keys() - found.keys():
                if not found or not fresh:
                    time.sleep(1.1)  # until what was looked at is visible again
                return list(found.values())
            found |= fresh


def _expected_chunks(planned: PlannedDocument) -> int:
    if planned.withdrawn or planned.document_id == MALFORMED_ID:
        return 0
    return len(chunk(normalise(planned.versions[-1]).text, DocumentFormat.MARKDOWN))


def _same(wanted: dict[str, Any], found: dict[str, Any]) -> int:
    return sum(1 for key, value in wanted.items() if key in found and found[key] == value)
