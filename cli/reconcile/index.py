"""Comparing a stage's search index with its documents from here."""

from datetime import timedelta
from typing import TYPE_CHECKING

from api_services.documents.reconcile import IndexDifference, reconcile_index
from api_services.queues import INGEST

if TYPE_CHECKING:
    from cli.stage_access import StageAccess


def reconcile_index_of(access: "StageAccess", *, patience: timedelta, execute: bool) -> IndexDifference:
    """What is out of line; ordered again where `execute` says so."""
    from api_services.documents.index.connect import open_index
    from api_services.documents.repository import DocumentRepository
    from api_services.documents.settings import IndexSettings
    from api_services.mongo import connect
    from api_services.settings import MongoSettings
    from api_services.sqs import SqsQueueSender
    from cli.queue.lib import url_of
    from cli.stage_settings import stage_settings

    urls = {INGEST.url_env_key: url_of(access.outputs, INGEST.output, access.stage)}
    database = connect(stage_settings(access, MongoSettings), app_name="sophia-cli")
    index = open_index(stage_settings(access, IndexSettings))
    try:
        return reconcile_index(
            DocumentRepository(database),
            index,
            SqsQueueSender(urls, lambda: access.sqs),
            patience=patience,
            execute=execute,
        )
    finally:
        index.close()
        database.client.close()
