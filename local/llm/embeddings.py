"""Embeddings by feature hashing: the same text gives the same unit vector, and texts that share words are near."""

import base64
import math
import zlib
from array import array
from collections import Counter
from itertools import pairwise
from typing import Final

from local.llm.text import STOPWORDS, words

MODEL_DIMENSIONS: Final = {
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "text-embedding-ada-002": 1536,
}
MAX_INPUTS: Final = 2048
MAX_INPUT_TOKENS: Final = 8192
MAX_REQUEST_TOKENS: Final = 300_000

_SUFFIXES = ("ingly", "edly", "ings", "ing", "ies", "ed", "es", "ly", "s")


def embed(text: str, dimensions: int) -> "array[float]":
    """A vector of `dimensions` floats and length 1."""
    vector = array("d", bytes(8 * dimensions))
    for feature, count in _features(text).items():
        kind, _, word = feature.partition(":")
        weight = (1 + math.log(count)) * _WEIGHTS[kind] * (0.15 if word in STOPWORDS else 1.0)
        hashed = zlib.crc32(feature.encode("utf-8", "surrogatepass"))
        # Two coordinates a feature: a single collision then costs half of its weight.
        for number in (hashed, zlib.crc32(b"again", hashed)):
            vector[number % dimensions] += weight if number & 0x80000000 else -weight
    length = math.sqrt(sum(value * value for value in vector))
    if length == 0.0:
        vector[0], length = 1.0, 1.0
    return array("f", (value / length for value in vector))


def to_base64(vector: "array[float]") -> str:
    """Little-endian float32, as `encoding_format="base64"` means it."""
    if memoryview(vector).format != "f":
        raise ValueError("a vector is an array of float32")
    return base64.b64encode(vector.tobytes()).decode()


_WEIGHTS: Final = {"w": 1.0, "b": 0.5, "g": 0.12}


def _features(text: str) -> Counter[str]:
    stems = [_stem(word) for word in words(text)]
    features = Counter(f"w:{stem}" for stem in stems)
    features.update(f"b:{first} {second}" for first, second in pairwise(stems))
    for stem in stems:
        if len(stem) > 4 and stem not in STOPWORDS:
            features.update(f"g:{stem[start : start + 4]}" for start in range(len(stem) - 3))
    if not stems:
        features.update(f"w:{character}" for character in text)
    return features


def _stem(word: str) -> str:
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= 3:
            return word[: -len(suffix)]
    return word
