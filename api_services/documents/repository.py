"""Documents, their contents and the leases of those who index them, in MongoDB."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from pymongo import ASCENDING, IndexModel, ReturnDocument, UpdateOne

from api_services.clock import utc_now
from api_services.documents.models import Document, DocumentContent, DocumentFormat, DocumentPage, DocumentState
from api_services.errors import ConflictError, NotFoundError
from api_services.mongo import Indexes, MongoDatabase, translated_errors

RESULTS_TTL_SECONDS: Final = 90 * 24 * 3600
"""How long a chunk's results outlive the last time they were used."""

INDEXES: Final[Indexes] = {
    "documents": (IndexModel([("state", ASCENDING), ("_id", ASCENDING)]),),
    "chunkResults": (IndexModel([("usedAt", ASCENDING)], expireAfterSeconds=RESULTS_TTL_SECONDS),),
}

_UPSERT_ATTEMPTS: Final = 5

_SETTLED: Final = (DocumentState.QUEUED, DocumentState.INDEXING, DocumentState.INDEXED, DocumentState.EMPTY)
"""States in which the same version has no work pending, or its work is already enqueued."""


def _document(raw: dict[str, Any]) -> Document:
    return Document.model_validate({**raw, "documentId": raw["_id"]})


class DocumentRepository:
    """Collections `documents` (one per document) and `documentContents` (one per document and content hash)."""

    def __init__(self, database: MongoDatabase) -> None:
        self._documents = database["documents"]
        self._contents = database["documentContents"]

    def upsert(
        self, document_id: str, *, title: str, document_format: DocumentFormat, content: bytes, content_hash: str
    ) -> Document:
        """Store content as a new draft version, or return the document as it is where nothing changed."""
        now = utc_now()
        latest = {
            "title": title,
            "format": document_format.value,
            "contentHash": content_hash,
            "contentBytes": len(content),
            "updatedAt": now,
        }
        with translated_errors():
            # Content goes first and is named by its hash, so neither a crash nor a race can leave a version without it.
            self._contents.update_one(
                {"_id": f"{document_id}:{content_hash}"},
                {"$setOnInsert": {"title": title, "format": document_format.value, "content": content}},
                upsert=True,
            )
            for _ in range(_UPSERT_ATTEMPTS):
                found = self._documents.find_one({"_id": document_id})
                if found is None:
                    first = {"version": 1, "revision": 0, "state": DocumentState.DRAFT.value, "createdAt": now}
                    result = self._documents.update_one(
                        {"_id": document_id}, {"$setOnInsert": {**first, **latest}}, upsert=True
                    )
                    if result.upserted_id is not None:
                        return self.get(document_id)
                    continue
                if found["contentHash"] == content_hash:
                    return _document(found)
                changed = self._documents.find_one_and_update(
                    {"_id": document_id, "version": found["version"]},
                    {"$set": latest, "$inc": {"version": 1}},
                    return_document=ReturnDocument.AFTER,
                )
                if changed is not None:
                    return _document(changed)
        raise ConflictError("the document is being changed by others; read it and try again", document_id=document_id)

    def get(self, document_id: str) -> Document:
        """Raises `NotFoundError`."""
        with translated_errors():
            found = self._documents.find_one({"_id": document_id})
        if found is None:
            raise NotFoundError(f"there is no document '{document_id}'", document_id=document_id)
        return _document(found)

    def content(self, document_id: str, content_hash: str) -> DocumentContent:
        """Raises `NotFoundError`."""
        with translated_errors():
            found = self._contents.find_one({"_id": f"{document_id}:{content_hash}"})
        if found is None:
            raise NotFoundError(f"document '{document_id}' has no such content", document_id=document_id)
        return DocumentContent.model_validate(found)

    def page(self, *, limit: int, cursor: str | None, state: DocumentState | None) -> DocumentPage:
        """Up to `limit` documents whose ids follow `cursor`."""
        query: dict[str, Any] = {}
        if cursor is not None:
            query["_id"] = {"$gt": cursor}
        if state is not None:
            query["state"] = state.value
        with translated_errors():
            found = list(self._documents.find(query).sort("_id", ASCENDING).limit(limit + 1))
        documents = tuple(_document(raw) for raw in found[:limit])
        return DocumentPage(documents=documents, next_cursor=documents[-1].document_id if len(found) > limit else None)

    def all_published(self) -> Iterator[Document]:
        """Every document that was approved at some time, withdrawn ones included, in the order of their ids."""
        with translated_errors():
            for raw in self._documents.find({"revision": {"$gt": 0}}).sort("_id", ASCENDING):
                yield _document(raw)

    def approve(self, document_id: str, version: int) -> Document | None:
        """Approve `version` if it is the latest; None where it is not, or is on its way already."""
        now = utc_now()
        with translated_errors():
            found = self._documents.find_one_and_update(
                {
                    "_id": document_id,
                    "version": version,
                    "$nor": [
                        {
                            "approvedVersion": version,
                            "state": {"$in": [state.value for state in (*_SETTLED, DocumentState.APPROVED)]},
                        }
                    ],
                },
                [
                    {
                        "$set": {
                            "approvedVersion": version,
                            "approvedContentHash": "$contentHash",
                            "approvedAt": now,
                            "updatedAt": now,
                            "state": DocumentState.APPROVED.value,
                            "revision": {"$add": ["$revision", 1]},
                            "failure": None,
                            "chunksTotal": None,
                            "chunksDone": None,
                        }
                    }
                ],
                return_document=ReturnDocument.AFTER,
            )
        return None if found is None else _document(found)

    def withdraw(self, document_id: str) -> Document | None:
        """Withdraw what was approved; None where nothing is."""
        now = utc_now()
        with translated_errors():
            found = self._documents.find_one_and_update(
                {"_id": document_id, "approvedVersion": {"$ne": None}, "state": {"$ne": DocumentState.WITHDRAWN.value}},
                {
                    "$set": {
                        "state": DocumentState.WITHDRAWN.value,
                        "updatedAt": now,
                        "failure": None,
                        "chunksTotal": None,
                        "chunksDone": None,
                    },
                    "$inc": {"revision": 1},
                },
                return_document=ReturnDocument.AFTER,
            )
        return None if found is None else _document(found)

    def mark(
        self,
        document: Document,
        state: DocumentState,
        *,
        only_from: Sequence[DocumentState] | None = None,
        **fields: Any,
    ) -> bool:
        """Set the state of this revision; False where a later approval or withdrawal came between."""
        query: dict[str, Any] = {"_id": document.document_id, "revision": document.revision}
        if only_from is not None:
            query["state"] = {"$in": [each.value for each in only_from]}
        with translated_errors():
            result = self._documents.update_one(
                query, {"$set": {"state": state.value, "updatedAt": utc_now(), **fields}}
            )
        return result.matched_count == 1

    def claim(self, document: Document, owner: str, lease_seconds: float) -> float | None:
        """Take the lease of this revision: None when taken, else the seconds the holder's lease still runs."""
        now = utc_now()
        with translated_errors():
            taken = self._documents.find_one_and_update(
                {
                    "_id": document.document_id,
                    "revision": document.revision,
                    "$or": [
                        {"lease": None},
                        {"lease.expiresAt": {"$lte": now}},
                        {"lease.revision": {"$ne": document.revision}},
                    ],
                },
                {
                    "$set": {
                        "lease": {
                            "owner": owner,
                            "revision": document.revision,
                            "expiresAt": now + timedelta(seconds=lease_seconds),
                        },
                        "state": DocumentState.INDEXING.value,
                        "failure": None,
                        "updatedAt": now,
                    }
                },
            )
            if taken is not None:
                return None
            found = self._documents.find_one({"_id": document.document_id}, {"lease": 1})
        lease = (found or {}).get("lease")
        if lease is None:
            return 0.0
        expires_at: datetime = lease["expiresAt"]
        return max(0.0, (expires_at - now).total_seconds())

    def renew(self, document: Document, owner: str, lease_seconds: float, *, done: int, total: int) -> bool:
        """Keep the lease and show progress; False where the lease or the revision is no longer ours."""
        now = utc_now()
        with translated_errors():
            result = self._documents.update_one(
                {"_id": document.document_id, "revision": document.revision, "lease.owner": owner},
                {
                    "$set": {
                        "lease.expiresAt": now + timedelta(seconds=lease_seconds),
                        "chunksDone": done,
                        "chunksTotal": total,
                        "updatedAt": now,
                    }
                },
            )
        return result.matched_count == 1

    def release(self, document_id: str, owner: str) -> None:
        """Give the lease back, if it is still ours."""
        with translated_errors():
            self._documents.update_one({"_id": document_id, "lease.owner": owner}, {"$set": {"lease": None}})


class ChunkResultRepository:
    """What was paid for: vectors and enrichments by a key of content, model and prompt; kept for 90 days after use."""

    _KEYS_A_QUERY: Final = 500

    def __init__(self, database: MongoDatabase) -> None:
        self._results = database["chunkResults"]

    def find(self, keys: Sequence[str]) -> dict[str, bytes]:
        """The results that are there, marked as used."""
        found: dict[str, bytes] = {}
        with translated_errors():
            for start in range(0, len(keys), self._KEYS_A_QUERY):
                some = list(keys[start : start + self._KEYS_A_QUERY])
                found.update({raw["_id"]: bytes(raw["result"]) for raw in self._results.find({"_id": {"$in": some}})})
                self._results.update_many({"_id": {"$in": some}}, {"$set": {"usedAt": utc_now()}})
        return found

    def keep(self, results: Mapping[str, bytes]) -> None:
        """Store results as they come; storing one again changes nothing."""
        now = utc_now()
        writes = [
            UpdateOne({"_id": key}, {"$setOnInsert": {"result": result, "usedAt": now}}, upsert=True)
            for key, result in results.items()
        ]
        if writes:
            with translated_errors():
                self._results.bulk_write(writes, ordered=False)
