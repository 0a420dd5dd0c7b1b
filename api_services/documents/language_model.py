"""Embedding and enrichment through the shared language model."""

import sys
import time
from array import array
from collections.abc import Sequence
from typing import Final

from api_services.documents.chunking import Chunk
from api_services.documents.embedding import Embedder, dimension_of
from api_services.documents.enrichment import SYSTEM_PROMPT, Enricher, Enrichment
from api_services.errors import DependencyError
from api_services.llm.client import ChatMessage, LanguageModel, TruncatedAnswerError

MAX_OUTPUT_TOKENS: Final = 1_500
"""The answer has about 200; reasoning models spend the rest before they answer."""


class LanguageModelEmbedder(Embedder):
    """Vectors of an OpenAI embedding model whose dimension is known."""

    def __init__(self, language_model: LanguageModel, model: str) -> None:
        self.model = model
        self.dimension = dimension_of(model)
        self._language_model = language_model

    def embed(self, texts: Sequence[str], *, timeout_seconds: float) -> list[bytes]:
        """One little-endian float32 vector per text, in order."""
        answer = self._language_model.embed(texts, model=self.model, timeout_seconds=timeout_seconds)
        vectors = [_packed(vector) for vector in answer.vectors]
        if any(len(vector) != 4 * self.dimension for vector in vectors):
            raise DependencyError(
                f"{self.model} should give {self.dimension} dimensions and gave {len(vectors[0]) // 4}",
                code="malformed_answer",
            )
        return vectors


class LanguageModelEnricher(Enricher):
    """Structured answers of an OpenAI model."""

    def __init__(self, language_model: LanguageModel, model: str) -> None:
        self.model = model
        self._language_model = language_model

    def enrich(self, chunk: Chunk, *, timeout_seconds: float) -> Enrichment:
        """One chunk's enrichment."""
        deadline = time.monotonic() + timeout_seconds
        try:
            return self._ask(chunk, MAX_OUTPUT_TOKENS, timeout_seconds)
        except TruncatedAnswerError:
            return self._ask(chunk, 4 * MAX_OUTPUT_TOKENS, deadline - time.monotonic())

    def _ask(self, chunk: Chunk, max_output_tokens: int, timeout_seconds: float) -> Enrichment:
        return self._language_model.structured(
            Enrichment,
            [{"role": "system", "content": SYSTEM_PROMPT}, _passage(chunk)],
            model=self.model,
            name="documents.enrich",
            max_output_tokens=max_output_tokens,
            timeout_seconds=timeout_seconds,
        ).value.bounded()


def _passage(chunk: Chunk) -> ChatMessage:
    return {"role": "user", "content": f"<passage>\n{chunk.embedded_text}\n</passage>"}


def _packed(vector: Sequence[float]) -> bytes:
    packed = array("f", vector)
    if sys.byteorder == "big":
        packed.byteswap()
    return packed.tobytes()
