"""Faults on demand, and the count of what was asked and answered."""

import random
import threading
from collections import Counter
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

CallKind = Literal["chat", "responses", "embeddings"]


class Fault(BaseModel):
    """What to do wrong: to the next `count` calls, or to a share `rate` of them, or to those that hold `match`.

    `rate_limit` sends `Retry-After: retryAfterSeconds`; `slow` answers after `delaySeconds`; `hang` never answers
    while it stands.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, validate_by_name=True, validate_by_alias=True
    )

    kind: Literal[
        "rate_limit", "insufficient_quota", "server_error", "slow", "hang", "refusal", "truncated", "invalid_json"
    ]
    count: Annotated[int, Field(ge=1)] | None = None
    rate: Annotated[float, Field(gt=0, le=1)] = 1.0
    seed: int = 0
    match: Annotated[str, Field(min_length=1, max_length=1000)] | None = None
    on: tuple[CallKind, ...] = ("chat", "responses", "embeddings")
    retry_after_seconds: Annotated[float, Field(ge=0, le=3600)] = 1.0
    delay_seconds: Annotated[float, Field(ge=0, le=3600)] = 2.0


@dataclass(slots=True)
class _Standing:
    fault: Fault
    left: int | None
    chance: random.Random
    gone: threading.Event = field(default_factory=threading.Event)


@dataclass(frozen=True, slots=True)
class Hit:
    """A fault that applies to one call; `gone` is set when it is taken away."""

    fault: Fault
    gone: threading.Event


class Faults:
    """The faults in force, in the order they were set."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._standing: list[_Standing] = []

    def add(self, fault: Fault) -> None:
        """Put `fault` in force after those already there."""
        with self._lock:
            self._standing.append(_Standing(fault, fault.count, random.Random(fault.seed)))  # noqa: S311

    def clear(self) -> None:
        """Take every fault away; hanging calls are let go with a 500."""
        with self._lock:
            standing, self._standing = self._standing, []
        for one in standing:
            one.gone.set()

    def listed(self) -> list[dict[str, Any]]:
        """The faults in force, with how often each still strikes."""
        with self._lock:
            return [{**one.fault.model_dump(by_alias=True), "left": one.left} for one in self._standing]

    def strike(self, kind: CallKind, content: str) -> Hit | None:
        """The fault for this call, counted off, or None."""
        with self._lock:
            for one in self._standing:
                fault = one.fault
                if kind not in fault.on or (kind == "embeddings" and fault.kind in _ANSWERS_ONLY):
                    continue
                if one.left == 0 or (fault.match is not None and fault.match not in content):
                    continue
                if fault.rate < 1.0 and one.chance.random() >= fault.rate:
                    continue
                if one.left is not None:
                    one.left -= 1
                return Hit(fault, one.gone)
        return None


_ANSWERS_ONLY = frozenset({"refusal", "truncated", "invalid_json"})


class Calls:
    """Counts per kind and per content hash. A call is `answered` when it would be paid for, heard or not."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._clear()

    def _clear(self) -> None:
        self._received: Counter[str] = Counter()
        self._answered: Counter[str] = Counter()
        self._faults: Counter[str] = Counter()
        self._by_content: dict[str, Counter[str]] = {"chat": Counter(), "responses": Counter(), "embeddings": Counter()}
        self._input_tokens: Counter[str] = Counter()
        self._output_tokens: Counter[str] = Counter()
        self._in_flight = 0
        self._most_in_flight = 0

    def reset(self) -> None:
        """Start counting from nothing; calls in flight stay counted as such."""
        with self._lock:
            in_flight = self._in_flight
            self._clear()
            self._in_flight = self._most_in_flight = in_flight

    def begin(self, kind: CallKind) -> None:
        """A call arrived."""
        with self._lock:
            self._received[kind] += 1
            self._in_flight += 1
            self._most_in_flight = max(self._most_in_flight, self._in_flight)

    def end(self) -> None:
        """A call left, answered or not."""
        with self._lock:
            self._in_flight -= 1

    def struck(self, fault: Fault) -> None:
        """A fault was put in a call's way."""
        with self._lock:
            self._faults[fault.kind] += 1

    def answered(self, kind: CallKind, hashes: list[str], input_tokens: int, output_tokens: int) -> None:
        """A call was worked on to its end: `hashes` are those of its contents."""
        with self._lock:
            self._answered[kind] += 1
            self._by_content[kind].update(hashes)
            self._input_tokens[kind] += input_tokens
            self._output_tokens[kind] += output_tokens

    def counted(self) -> dict[str, Any]:
        """The answer of `GET /_control/calls`."""
        with self._lock:
            return {
                "received": dict(self._received),
                "answered": dict(self._answered),
                "faults": dict(self._faults),
                "byContent": {kind: dict(counts) for kind, counts in self._by_content.items()},
                "inputTokens": dict(self._input_tokens),
                "outputTokens": dict(self._output_tokens),
                "inFlight": self._in_flight,
                "mostInFlight": self._most_in_flight,
            }
