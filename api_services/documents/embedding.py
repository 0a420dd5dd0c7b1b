"""Embeddings: what a model must offer, and batches bounded by tokens and count."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Final, TypeVar

from api_services.errors import ConfigurationError

MAX_BATCH_INPUTS: Final = 64
MAX_BATCH_TOKENS: Final = 60_000
"""Upper bound by bytes (see `chunking.token_bound`); the API takes 300,000 tokens and 2,048 inputs a request."""

MODEL_DIMENSIONS: Final = {
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "text-embedding-ada-002": 1536,
}


class Embedder(ABC):
    """Turns texts into vectors of one model. Raises the typed errors of `api_services.errors`."""

    model: str
    dimension: int

    @abstractmethod
    def embed(self, texts: Sequence[str], *, timeout_seconds: float) -> list[bytes]:
        """One little-endian float32 vector per text, in order; one call, no retry."""


def dimension_of(model: str) -> int:
    """How many dimensions the model's vectors have; raises `ConfigurationError` for a model not known here."""
    dimension = MODEL_DIMENSIONS.get(model)
    if dimension is None:
        raise ConfigurationError(
            f"EMBEDDING_MODEL {model} is not known; use one of {', '.join(sorted(MODEL_DIMENSIONS))}"
        )
    return dimension


T = TypeVar("T")


def batches(items: Sequence[tuple[T, int]]) -> Iterator[list[T]]:
    """Split `(item, tokens)` in order so that no batch passes either bound; one item alone may."""
    batch: list[T] = []
    tokens = 0
    for item, weight in items:
        if batch and (len(batch) >= MAX_BATCH_INPUTS or tokens + weight > MAX_BATCH_TOKENS):
            yield batch
            batch, tokens = [], 0
        batch.append(item)
        tokens += weight
    if batch:
        yield batch
