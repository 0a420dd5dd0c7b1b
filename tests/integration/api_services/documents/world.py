"""Everything documents need, real: mongod, a libSQL file, the model's API on this machine. Only the queue is a fake."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import SecretStr
from pymongo.database import Database

from api_services.documents.index.base import SearchIndex
from api_services.documents.index.connect import open_index
from api_services.documents.ingest import IngestOutcome, IngestTools, ingest_document
from api_services.documents.language_model import LanguageModelEmbedder, LanguageModelEnricher
from api_services.documents.messages import IngestDocument
from api_services.documents.models import Document, SearchPage
from api_services.documents.pipeline import ChunkCompleter
from api_services.documents.repository import ChunkResultRepository, DocumentRepository
from api_services.documents.search import search
from api_services.documents.service import approve_document, upsert_document
from api_services.documents.settings import IndexSettings
from api_services.llm.client import OpenAILanguageModel
from api_services.settings import OpenAISettings
from api_services.tracing import NoTracer
from local.llm.server import LlmServer
from tests.support.fakes import FakeQueueSender


@dataclass
class World:
    """`deliver` is one delivery of a message; `calls` is what the model was paid for since `forget_calls`."""

    documents: DocumentRepository
    results: ChunkResultRepository
    index: SearchIndex
    sender: FakeQueueSender
    llm: LlmServer
    tools: IngestTools
    index_path: Path

    def approve(self, document_id: str, content: str | bytes, *, title: str = "Handbook") -> Document:
        upsert_document(self.documents, document_id=document_id, title=title, content=content)
        return approve_document(self.documents, self.sender, document_id=document_id)

    def message(self, document_id: str) -> IngestDocument:
        """The last message that was sent for the document."""
        messages = [m for m in self.sender.messages("ingest") if isinstance(m, IngestDocument)]
        return [m for m in messages if m.document_id == document_id][-1]

    def deliver(
        self,
        message: IngestDocument | str,
        *,
        remaining_seconds: Callable[[], float] = lambda: 900.0,
        last_receive: bool = False,
        tools: IngestTools | None = None,
    ) -> IngestOutcome:
        if isinstance(message, str):
            message = self.message(message)
        return ingest_document(
            tools or self.tools, message, remaining_seconds=remaining_seconds, last_receive=last_receive
        )

    def index_document(self, document_id: str, content: str | bytes) -> IngestOutcome:
        self.approve(document_id, content)
        return self.deliver(document_id)

    def find(self, query: str, **options: Any) -> SearchPage:
        embedder = LanguageModelEmbedder(self.model(), "text-embedding-3-small")
        return search(self.index, embedder, query=query, **options)

    def model(self) -> OpenAILanguageModel:
        settings = OpenAISettings(openai_api_key=SecretStr("test-key"), openai_base_url=self.llm.base_url)
        return OpenAILanguageModel(settings, NoTracer(), calls=1)

    def calls(self) -> dict[str, int]:
        return self.llm.calls.counted()["answered"]

    def received(self) -> dict[str, int]:
        return self.llm.calls.counted()["received"]

    def paid_twice(self) -> int:
        """Contents that were answered more than once, summed over what was too much."""
        by_content = self.llm.calls.counted()["byContent"]
        return sum(count - 1 for kind in ("responses", "embeddings") for count in by_content[kind].values())

    def with_tools(self, **changes: Any) -> IngestTools:
        return replace(self.tools, **changes)


def make_world(database: Database[dict[str, Any]], llm: LlmServer, folder: Path, *, concurrency: int = 8) -> World:
    settings = IndexSettings(index_url=f"file:{folder / 'index.db'}")
    openai_settings = OpenAISettings(openai_api_key=SecretStr("test-key"), openai_base_url=llm.base_url)
    model = OpenAILanguageModel(openai_settings, NoTracer(), calls=1)
    documents = DocumentRepository(database)
    results = ChunkResultRepository(database)
    sender = FakeQueueSender()
    index = open_index(settings)
    completer = ChunkCompleter(
        results,
        LanguageModelEmbedder(model, openai_settings.embedding_model),
        LanguageModelEnricher(model, openai_settings.enrichment_model),
        concurrency=concurrency,
    )
    tools = IngestTools(documents=documents, completer=completer, index=index, sender=sender)
    return World(documents, results, index, sender, llm, tools, folder / "index.db")


def prose(sections: int, *, seed: str = "alpha") -> str:
    """Markdown with `sections` headings, each a chunk of its own."""
    parts: list[str] = []
    for number in range(sections):
        words = " ".join(f"{seed}{number}word{word} lives beside the river and works there." for word in range(16))
        parts.append(f"## Section {number} of {seed}\n\n{words}\n")
    return "\n".join(parts)


def in_background(call: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    """Start `call` in a thread; the list gets its result or its error."""
    outcome: list[Any] = []

    def run() -> None:
        try:
            outcome.append(call())
        except Exception as exc:  # noqa: BLE001  (the test looks at it)
            outcome.append(exc)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, outcome


def until(true: Callable[[], bool], *, seconds: float = 10.0) -> None:
    """Wait for a condition; the test fails where it never comes."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it never became true"
        time.sleep(0.01)
