"""The failure store: why a message failed, for 14 days. Best effort; holds no body and no error text."""

import hashlib
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from types import TracebackType

    from pymongo import IndexModel
    from pymongo.database import Database

COLLECTION: Final = "message_failures"
KEPT_SECONDS: Final = 14 * 24 * 3600
"""As long as a dead-letter queue keeps the message."""

WRITE_TIMEOUT_SECONDS: Final = 2.0
"""For all failures of a batch together; the consumer keeps more than this free at its end."""

FRAMES_MAX: Final = 12
CAUSES_MAX: Final = 5
ATTEMPTS_KEPT: Final = 10
FINGERPRINT_FRAMES: Final = 3
_PROJECT_PACKAGES: Final = ("functions", "api_services", "cli", "local", "toolchain")

Outcome = Literal["dropped", "dead_lettered", "deferred", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One failed delivery of one message."""

    message_id: str
    queue: str
    request_id: str | None
    error_class: str
    code: str
    outcome: Outcome
    frames: tuple[str, ...]
    fingerprint: str
    receive_count: int
    at: datetime


class FailureStore(ABC):
    """Keeps failures, one record per queue and message."""

    @abstractmethod
    def record(self, failures: Sequence[Failure]) -> None:
        """Keep all of them in bounded time; may raise, and the caller must not let that matter."""


def describe(
    error: BaseException,
    *,
    message_id: str,
    queue: str,
    request_id: str | None,
    code: str,
    outcome: Outcome,
    receive_count: int,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Failure:
    """A failure from its error: class names and code positions only, never the error's text."""
    frames = _frames(error.__traceback__)
    return Failure(
        message_id=message_id,
        queue=queue,
        request_id=request_id,
        error_class=" < ".join(_classes(error)),
        code=code,
        outcome=outcome,
        frames=_lines(frames),
        fingerprint=_fingerprint(type(error).__name__, code, frames),
        receive_count=receive_count,
        at=now(),
    )


def frames_of(error: BaseException) -> tuple[str, ...]:
    """The innermost frames as `module:line function`: where, never with what."""
    return _lines(_frames(error.__traceback__))


def _lines(frames: Sequence[tuple[str, int, str]]) -> tuple[str, ...]:
    return tuple(f"{module}:{line} {name}" for module, line, name in frames[-FRAMES_MAX:])


def _classes(error: BaseException) -> list[str]:
    names: list[str] = []
    current: BaseException | None = error
    while current is not None and len(names) < CAUSES_MAX:
        names.append(type(current).__name__)
        current = current.__cause__
    return names


def _frames(start: "TracebackType | None") -> list[tuple[str, int, str]]:
    """(module, line, function), outermost first; modules, since paths differ between a zip and a checkout."""
    return [
        (str(frame.f_globals.get("__name__", "?")), line, frame.f_code.co_name)
        for frame, line in traceback.walk_tb(start)
    ]


def _fingerprint(error_class: str, code: str, frames: Sequence[tuple[str, int, str]]) -> str:
    """Equal for equal causes: the innermost frames of the project without their lines, which move with every edit."""
    ours = [f"{module} {name}" for module, _, name in frames if module.split(".", 1)[0] in _PROJECT_PACKAGES]
    text = "\n".join([error_class, code, *ours[-FINGERPRINT_FRAMES:]])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class MongoFailureStore(FailureStore):
    """One document per queue and message; it disappears 14 days after the last failure."""

    def __init__(self, database: Callable[[], "Database[dict[str, Any]]"]) -> None:
        self._database = database

    def record(self, failures: Sequence[Failure]) -> None:
        """Write all in one bulk of at most 2 s; raises what the driver raises."""
        import pymongo

        with pymongo.timeout(WRITE_TIMEOUT_SECONDS):
            self._database()[COLLECTION].bulk_write([_upsert(failure) for failure in failures], ordered=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptFailure:
    """What the store knows of one message."""

    message_id: str
    error_class: str
    code: str
    fingerprint: str
    frames: tuple[str, ...]
    receive_count: int
    first_at: datetime
    last_at: datetime


def find_failures(
    database: "Database[dict[str, Any]]", queue: str, message_ids: Sequence[str]
) -> dict[str, KeptFailure]:
    """The kept failures of a queue's messages by message id; messages without one are absent."""
    import pymongo

    with pymongo.timeout(WRITE_TIMEOUT_SECONDS):
        found = list(database[COLLECTION].find({"_id": {"$in": [f"{queue}/{one}" for one in message_ids]}}))
    return {
        document["messageId"]: KeptFailure(
            message_id=document["messageId"],
            error_class=document["errorClass"],
            code=document["code"],
            fingerprint=document["fingerprint"],
            frames=tuple(document["traceback"]),
            receive_count=document["receiveCount"],
            first_at=document["firstAt"],
            last_at=document["lastAt"],
        )
        for document in found
    }


def indexes() -> "dict[str, list[IndexModel]]":
    """The TTL index, and what looks a failure up by queue and cause or by message."""
    from pymongo import IndexModel

    return {
        COLLECTION: [
            IndexModel("lastAt", expireAfterSeconds=KEPT_SECONDS),
            IndexModel([("queue", 1), ("fingerprint", 1), ("lastAt", -1)]),
            IndexModel("messageId"),
        ]
    }


def _upsert(failure: Failure) -> Any:
    from pymongo import UpdateOne

    attempt = {
        "at": failure.at,
        "receiveCount": failure.receive_count,
        "errorClass": failure.error_class,
        "code": failure.code,
        "outcome": failure.outcome,
    }
    return UpdateOne(
        {"_id": f"{failure.queue}/{failure.message_id}"},
        {
            "$set": {
                "messageId": failure.message_id,
                "queue": failure.queue,
                "requestId": failure.request_id,
                "errorClass": failure.error_class,
                "code": failure.code,
                "outcome": failure.outcome,
                "traceback": list(failure.frames),
                "fingerprint": failure.fingerprint,
                "lastAt": failure.at,
            },
            "$setOnInsert": {"firstAt": failure.at},
            "$max": {"receiveCount": failure.receive_count},
            "$push": {"attempts": {"$each": [attempt], "$slice": -ATTEMPTS_KEPT}},
        },
        upsert=True,
    )
