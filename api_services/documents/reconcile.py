"""Comparing the index with the approved documents, and ordering the difference."""

import logging
from datetime import datetime, timedelta
from typing import Final

from api_services.clock import Clock, utc_now
from api_services.documents.index.base import IndexEntry, SearchIndex
from api_services.documents.messages import IngestDocument
from api_services.documents.models import Document, DocumentState
from api_services.documents.repository import DocumentRepository
from api_services.entities import Entity
from api_services.queues import INGEST
from api_services.sqs import QueueSender

PATIENCE: Final = timedelta(minutes=30)
"""A document changed less long ago is on its way: its message is in the queue or being worked on."""

BATCH: Final = 100

logger = logging.getLogger(__name__)


class IndexDifference(Entity):
    """What the index lacks, holds in an older version, or should not hold any more, by document id."""

    missing: tuple[str, ...]
    stale: tuple[str, ...]
    unwanted: tuple[str, ...]
    orphans_removed: int = 0

    @property
    def total(self) -> int:
        """Documents out of line."""
        return len(self.missing) + len(self.stale) + len(self.unwanted)


def reconcile_index(
    documents: DocumentRepository,
    index: SearchIndex,
    sender: QueueSender,
    *,
    patience: timedelta = PATIENCE,
    execute: bool = True,
    clock: Clock = utc_now,
) -> IndexDifference:
    """Enqueue what is missing, stale or unwanted, and remove orphaned chunks; without `execute` only look.

    Documents changed within `patience` are left alone, and failed ones until they are approved again. Doing it again
    is harmless. An index entry that no document knows is removed here: there is nothing a message could name.
    """
    held = {entry.document_id: entry for entry in index.entries()}
    before = clock() - patience
    missing: list[str] = []
    stale: list[str] = []
    unwanted: list[str] = []
    orders: list[IngestDocument] = []
    for document in documents.all_published():
        entry = held.pop(document.document_id, None)
        kind = _kind(document, entry, before)
        if kind is None or document.approved_version is None:
            continue
        {"missing": missing, "stale": stale, "unwanted": unwanted}[kind].append(document.document_id)
        orders.append(IngestDocument(document_id=document.document_id, version=document.approved_version))
    unknown = [entry for entry in held.values() if not entry.removed]
    unwanted += [entry.document_id for entry in unknown]
    swept = 0
    if execute:
        for start in range(0, len(orders), BATCH):
            sender.send_batch(INGEST, orders[start : start + BATCH])
        for entry in unknown:
            index.remove(document_id=entry.document_id, version=entry.version, revision=entry.revision)
        swept = index.sweep_orphans()
    difference = IndexDifference(
        missing=tuple(missing), stale=tuple(stale), unwanted=tuple(unwanted), orphans_removed=swept
    )
    logger.info(
        "documents.reconciled",
        extra={
            "missing": len(missing), "stale": len(stale), "unwanted": len(unwanted), "orphansRemoved": swept,
            "executed": execute,
        },
    )  # fmt: skip
    return difference


def _kind(document: Document, entry: IndexEntry | None, before: datetime) -> str | None:
    if document.state is DocumentState.FAILED or document.updated_at > before:
        return None
    if document.state is DocumentState.WITHDRAWN:
        return None if entry is None or entry.removed else "unwanted"
    if entry is None or entry.removed:
        return "missing"
    if entry.revision < document.revision:
        return "stale"
    # Indexed, but the document doesn't say so: its consumer was stopped between the two.
    return "stale" if document.state not in (DocumentState.INDEXED, DocumentState.EMPTY) else None
