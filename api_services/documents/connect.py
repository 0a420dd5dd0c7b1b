"""Building what documents need from settings."""

from api_services.documents.index.connect import open_index
from api_services.documents.ingest import IngestTools
from api_services.documents.language_model import LanguageModelEmbedder, LanguageModelEnricher
from api_services.documents.pipeline import ChunkCompleter
from api_services.documents.repository import ChunkResultRepository, DocumentRepository
from api_services.documents.settings import IndexSettings
from api_services.llm.client import OpenAILanguageModel
from api_services.mongo import MongoDatabase
from api_services.settings import OpenAISettings
from api_services.sqs import QueueSender
from api_services.tracing import Tracer


def query_embedder(settings: OpenAISettings, tracer: Tracer) -> LanguageModelEmbedder:
    """What a search embeds its query with."""
    return LanguageModelEmbedder(OpenAILanguageModel(settings, tracer), settings.embedding_model)


def ingest_tools(
    index_settings: IndexSettings,
    openai_settings: OpenAISettings,
    *,
    tracer: Tracer,
    database: MongoDatabase,
    sender: QueueSender,
) -> IngestTools:
    """What the ingest consumer works with. Raises `IndexMismatchError` before any document is touched."""
    # The model's own repeats are off: the pipeline repeats, and lets one rate limit hold every call.
    language_model = OpenAILanguageModel(openai_settings, tracer, calls=1)
    return IngestTools(
        documents=DocumentRepository(database),
        completer=ChunkCompleter(
            ChunkResultRepository(database),
            LanguageModelEmbedder(language_model, openai_settings.embedding_model),
            LanguageModelEnricher(language_model, openai_settings.enrichment_model),
        ),
        index=open_index(index_settings),
        sender=sender,
    )
