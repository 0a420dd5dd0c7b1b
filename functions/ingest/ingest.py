"""From a record to an indexed document."""

import logging
from dataclasses import dataclass

from api_services.documents.connect import ingest_tools
from api_services.documents.ingest import IngestTools, ingest_document
from api_services.documents.messages import IngestDocument
from api_services.documents.settings import IndexSettings
from api_services.queues import INGEST
from api_services.settings import LangfuseSettings, OpenAISettings
from api_services.tracing import Tracer, tracer_for
from functions.platform import clients
from functions.platform.records import RecordContext

FLUSH_SECONDS = 2.0

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Collaborators:
    """What the handler shares between warm invocations."""

    tools: IngestTools
    tracer: Tracer


def connect() -> Collaborators:
    """Open database, index and model; refuses an index of another model before any record is read."""
    tracer = tracer_for(clients.load_settings(LangfuseSettings))
    tools = ingest_tools(
        clients.load_settings(IndexSettings),
        clients.load_settings(OpenAISettings),
        tracer=tracer,
        database=clients.mongo_database(),
        sender=clients.queue_sender(),
    )
    return Collaborators(tools, tracer)


def ingest(collaborators: Collaborators, message: IngestDocument, context: RecordContext) -> None:
    """Bring the index in line with one document."""
    try:
        outcome = ingest_document(
            collaborators.tools,
            message,
            remaining_seconds=context.remaining_seconds,
            last_receive=context.receive_count >= INGEST.max_receive_count,
        )
    finally:
        collaborators.tracer.flush(FLUSH_SECONDS)
    logger.info(
        "documents.ingested",
        extra={"documentId": message.document_id, "version": message.version, "outcome": outcome.value},
    )
