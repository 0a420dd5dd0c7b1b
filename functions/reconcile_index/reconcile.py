"""The hourly comparison of index and documents."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from api_services.documents.index.base import SearchIndex
from api_services.documents.index.connect import open_index
from api_services.documents.reconcile import reconcile_index
from api_services.documents.repository import DocumentRepository
from api_services.documents.settings import IndexSettings
from api_services.metrics import emit
from api_services.sqs import QueueSender
from functions.platform import clients

INDEX_DRIFT: Final = "IndexDrift"
INDEX_ORPHANS: Final = "IndexOrphansRemoved"


@dataclass(frozen=True, slots=True)
class Collaborators:
    """What the job shares between warm runs."""

    documents: DocumentRepository
    index: SearchIndex
    sender: QueueSender


def connect() -> Collaborators:
    """Open database and index."""
    return Collaborators(
        DocumentRepository(clients.mongo_database()),
        open_index(clients.load_settings(IndexSettings)),
        clients.queue_sender(),
    )


def reconcile(collaborators: Collaborators, remaining_seconds: Callable[[], float]) -> None:
    """Enqueue the difference; what one run leaves, the next finds."""
    del remaining_seconds
    difference = reconcile_index(collaborators.documents, collaborators.index, collaborators.sender)
    emit(INDEX_DRIFT, difference.total)
    emit(INDEX_ORPHANS, difference.orphans_removed)
