"""The message that brings the index in line with one version of a document."""

from typing import Annotated, Literal

from pydantic import Field

from api_services.messages import Identifier, Message


class IngestDocument(Message):
    """Index the named version, or remove the document where that version is withdrawn.

    `continuation` counts how often the work was handed on because a function's time ran out.
    """

    type: Literal["document.ingest"] = "document.ingest"
    document_id: Identifier
    version: Annotated[int, Field(ge=1)]
    continuation: Annotated[int, Field(ge=0, le=15)] = 0
