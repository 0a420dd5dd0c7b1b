"""Chunks, embeds, enriches and indexes approved documents."""

from api_services.queues import INGEST
from functions.ingest.ingest import connect, ingest
from functions.platform.sqs_consumer import sqs_consumer

handler = sqs_consumer(INGEST, ingest, connect=connect)
