"""The one door to MongoDB: connecting, transactions, indexes, and the translation of the driver's errors."""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC
from typing import Any, Final, TypeVar

import pymongo
from pymongo import IndexModel, MongoClient
from pymongo.client_session import ClientSession
from pymongo.database import Database
from pymongo.errors import (
    BulkWriteError,
    ConnectionFailure,
    DocumentTooLarge,
    DuplicateKeyError,
    InvalidURI,
    OperationFailure,
    PyMongoError,
)
from pymongo.errors import (
    ConfigurationError as DriverConfigurationError,
)

from api_services.errors import AppError, ConfigurationError, ConflictError, DependencyError, InvalidInputError
from api_services.settings import MongoSettings

MongoDocument = dict[str, Any]
MongoDatabase = Database[MongoDocument]
Session = ClientSession
Indexes = Mapping[str, Sequence[IndexModel]]
"""Collection name to its indexes."""

SERVER_SELECTION_TIMEOUT_MS: Final = 4_000
OPERATION_TIMEOUT_MS: Final = 10_000
"""Bound of one operation where no shorter one is set around it."""
MAX_IDLE_TIME_MS: Final = 300_000
"""Below the 350 s after which a NAT gateway forgets an idle connection (VPC guide, nat-gateway-troubleshooting)."""

PING_TIMEOUT_SECONDS: Final = 2.0

CONFLICT_RETRY_SECONDS: Final = 30.0
"""A client that died inside a transaction blocks what it wrote until the server ends it, after 60 s by default
(MongoDB manual, transactionLifetimeLimitSeconds): three deliveries must reach beyond that."""

DUPLICATE_KEY: Final = "duplicate_key"
COMMIT_UNKNOWN: Final = "commit_result_unknown"
TIMED_OUT: Final = "database_timeout"

_AUTHENTICATION_CODES: Final = frozenset({13, 18, 8000})
_INDEX_CONFLICT_CODES: Final = frozenset({67, 85, 86})
_TRANSACTIONS_UNSUPPORTED_CODES: Final = frozenset({20, 263})
_DUPLICATE_KEY_CODE: Final = 11000

_NEEDS_REPLICA_SET: Final = (
    "MongoDB needs a replica set, since settlement is a transaction: start mongod with --replSet and run "
    "rs.initiate() once; a set of one node is enough"
)

_NOT_A_URI: Final = "MONGO_URI is not a connection string that the driver accepts; it begins with mongodb://"

T = TypeVar("T")


def connect(settings: MongoSettings, *, app_name: str = "sophia") -> MongoDatabase:
    """A database whose datetimes are aware, whose writes are acknowledged by a majority and whose waits are bounded.

    Raises `ConfigurationError` for a standalone server or refused credentials, `DependencyError` when no primary
    answers within four seconds.
    """
    uri = settings.mongo_uri.get_secret_value()
    if not uri.startswith(("mongodb://", "mongodb+srv://")):
        raise ConfigurationError(_NOT_A_URI)
    try:
        with translated_errors():
            client: MongoClient[MongoDocument] = MongoClient(
                uri,
                appname=app_name,
                tz_aware=True,
                tzinfo=UTC,
                w="majority",
                retryWrites=True,
                retryReads=True,
                serverSelectionTimeoutMS=SERVER_SELECTION_TIMEOUT_MS,
                connectTimeoutMS=SERVER_SELECTION_TIMEOUT_MS,
                timeoutMS=OPERATION_TIMEOUT_MS,
                maxIdleTimeMS=MAX_IDLE_TIME_MS,
            )
    except (ValueError, TypeError):
        # Their text may repeat parts of the string, password included.
        raise ConfigurationError(_NOT_A_URI) from None
    try:
        # The driver lets an operation's timeout replace the one of server selection, so the shorter one is said here.
        with translated_errors(), pymongo.timeout(SERVER_SELECTION_TIMEOUT_MS / 1000):
            hello = client.admin.command("hello")
        if "setName" not in hello and hello.get("msg") != "isdbgrid":
            raise ConfigurationError(_NEEDS_REPLICA_SET, code="needs_replica_set")
    except AppError:
        client.close()
        raise
    return client[settings.mongo_database]


def ping(database: MongoDatabase) -> None:
    """Ask for the primary; `DependencyError` when none answers within two seconds."""
    with translated_errors(), pymongo.timeout(PING_TIMEOUT_SECONDS):
        database.client.admin.command("ping")


def run_in_transaction(database: MongoDatabase, callback: Callable[[Session], T], *, timeout_seconds: float) -> T:
    """Run `callback` in a transaction and return what its committed run returned.

    The driver may run `callback` again after a conflict, and repeats a commit whose result is unknown, never the
    callback; all of it within `timeout_seconds`. So the callback only reads and writes through the session it is
    given, collects what should be sent, and lets the driver's errors pass. Raises `DependencyError`; with code
    `commit_result_unknown` the transaction may have been applied, and repeating the whole must be harmless.
    """
    if timeout_seconds <= 0:
        raise DependencyError("No time is left for the transaction; it was not started", code="out_of_time")
    try:
        with translated_errors(), pymongo.timeout(timeout_seconds), database.client.start_session() as session:
            return session.with_transaction(callback)
    except DependencyError as exc:
        if exc.code == TIMED_OUT:
            # A conflict shows as a timeout when its last repetition did not get an answer any more.
            exc.retry_after_seconds = CONFLICT_RETRY_SECONDS
        raise


def ensure_indexes(database: MongoDatabase, indexes: Indexes) -> None:
    """Create what is missing; what exists costs one round trip a collection.

    Raises `ConfigurationError` where an index of the same name or keys exists with other options.
    """
    with translated_errors():
        for collection, models in indexes.items():
            if models:
                database[collection].create_indexes(list(models))


@contextmanager
def translated_errors() -> Generator[None]:
    """Turn the driver's errors into typed ones; never used inside a transaction's callback, whose errors the driver
    must see to run it again."""
    try:
        yield
    except PyMongoError as exc:
        raise _translate(exc) from exc


def _translate(error: PyMongoError) -> AppError:
    if isinstance(error, DuplicateKeyError):
        return ConflictError("A document with this unique key exists", code=DUPLICATE_KEY)
    if isinstance(error, BulkWriteError) and _is_duplicate_key(error):
        return ConflictError("A document with this unique key exists", code=DUPLICATE_KEY)
    if isinstance(error, DocumentTooLarge):
        return InvalidInputError("The document is larger than MongoDB stores", code="document_too_large")
    if isinstance(error, InvalidURI | DriverConfigurationError):
        return ConfigurationError(_NOT_A_URI)
    if isinstance(error, OperationFailure):
        if error.code in _AUTHENTICATION_CODES:
            return ConfigurationError("MongoDB refused the credentials or permissions of MONGO_URI")
        if error.code in _INDEX_CONFLICT_CODES:
            return ConfigurationError(
                "An index exists under the same name or keys with other options; drop it and run again",
                code="index_conflict",
            )
        if error.code in _TRANSACTIONS_UNSUPPORTED_CODES and "replica set" in str(error):
            return ConfigurationError(_NEEDS_REPLICA_SET, code="needs_replica_set")
    if error.has_error_label("UnknownTransactionCommitResult"):
        return DependencyError("MongoDB did not say whether the transaction was applied", code=COMMIT_UNKNOWN)
    if error.has_error_label("TransientTransactionError") and not isinstance(error, ConnectionFailure):
        return DependencyError(
            "Another transaction held what this one needed",
            code="transaction_conflict",
            retry_after_seconds=CONFLICT_RETRY_SECONDS,
        )
    if error.timeout:
        return DependencyError("MongoDB did not answer in time", code=TIMED_OUT)
    return DependencyError(f"MongoDB failed with {type(error).__name__}", code="database_unavailable")


def _is_duplicate_key(error: BulkWriteError) -> bool:
    errors: list[dict[str, Any]] = (error.details or {}).get("writeErrors", [])
    return any(fault.get("code") == _DUPLICATE_KEY_CODE for fault in errors)
