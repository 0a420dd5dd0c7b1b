"""Real documents that every machine with this project has: the long descriptions of its installed packages."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.metadata import distributions
from typing import Final

from api_services.documents.models import MAX_TITLE_CHARS, DocumentFormat

MIN_CHARS: Final = 200
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class RealDocument:
    """One document as somebody wrote it."""

    document_id: str
    title: str
    format: DocumentFormat
    content: str

    def edited(self) -> "RealDocument":
        """The same with one sentence more in the paragraph in its middle."""
        paragraphs = self.content.split("\n\n")
        middle = len(paragraphs) // 2
        # A paragraph of prose, so that the edit changes text and not the structure around it.
        number = next(
            (n for n in (*range(middle, len(paragraphs)), *range(middle)) if _is_prose(paragraphs[n])), middle
        )
        paragraphs[number] = f"{paragraphs[number].rstrip()} This sentence was added by its editor."
        return replace(self, content="\n\n".join(paragraphs))


def real_documents() -> list[RealDocument]:
    """Every installed package's description in Markdown or reStructuredText, in the order of their ids."""
    found = {document.document_id: document for document in _described()}
    return [found[document_id] for document_id in sorted(found)]


def _described() -> Iterator[RealDocument]:
    for distribution in distributions():
        # The metadata's type says less than it holds: it is an e-mail message.
        metadata = distribution.metadata
        name = metadata["Name"]
        body: object = metadata.get_payload()  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]
        text = body if isinstance(body, str) and body.strip() else metadata["Description"] or ""
        if not name or len(text.strip()) < MIN_CHARS:
            continue
        kind = (metadata["Description-Content-Type"] or "").lower()
        document_format = DocumentFormat.MARKDOWN if "markdown" in kind else DocumentFormat.RST
        title = f"{name} {metadata['Version']}: {metadata['Summary'] or 'description'}"[:MAX_TITLE_CHARS]
        yield RealDocument(_UNSAFE.sub("-", name)[:64].strip("-_"), title, document_format, text)


def _is_prose(paragraph: str) -> bool:
    first = paragraph.lstrip("\n")[:1]
    return first.isalpha() and len(paragraph) > 80 and "\n\n" not in paragraph and "```" not in paragraph
