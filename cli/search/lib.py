"""Searching a stage's index from here."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.text import Text

from api_services.documents.models import SearchHit

if TYPE_CHECKING:
    from api_services.documents.embedding import Embedder
    from api_services.documents.index.base import SearchIndex
    from cli.stage_access import StageAccess


@contextmanager
def opened(access: "StageAccess") -> Generator[tuple["SearchIndex", "Embedder"]]:
    """The stage's index and what its queries are embedded with."""
    from api_services.documents.connect import query_embedder
    from api_services.documents.index.connect import open_index
    from api_services.documents.settings import IndexSettings
    from api_services.settings import OpenAISettings
    from api_services.tracing import NoTracer
    from cli.stage_settings import stage_settings

    index = open_index(stage_settings(access, IndexSettings))
    try:
        yield index, query_embedder(stage_settings(access, OpenAISettings), NoTracer())
    finally:
        index.close()


def shown(hit: SearchHit, place: int) -> Text:
    """A hit for people: where it is, and the snippet with its words marked."""
    text = Text()
    text.append(f"{place}. ", style="bold")
    text.append(hit.document_title, style="bold cyan")
    text.append(f"  {hit.document_id} v{hit.version}", style="dim")
    if hit.heading:
        text.append(f"\n   {hit.heading}", style="green")
    text.append("\n   ")
    text.append_text(marked_snippet(hit))
    return text


def marked_snippet(hit: SearchHit) -> Text:
    """The snippet on one line, the query's words marked."""
    snippet = Text(hit.snippet)
    for start, end in hit.highlights:
        snippet.stylize("bold yellow", start, end)
    return Text(" ").join(part for part in snippet.split("\n") if part.plain.strip())
