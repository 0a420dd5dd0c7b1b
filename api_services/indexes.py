"""Every index of the database. The API's start creates what is missing; consumers make no index: what must be unique
from the first write on is unique by `_id`."""

from api_services.credits import repository as credits_repository
from api_services.delivery import failures
from api_services.documents import repository as documents_repository
from api_services.interviews import repository as interviews_repository
from api_services.mongo import MongoDatabase, ensure_indexes
from api_services.reports import repository as reports_repository


def ensure_all_indexes(database: MongoDatabase) -> None:
    """Create the missing indexes of all collections; doing it again changes nothing. Errors as `ensure_indexes`."""
    for repository in (interviews_repository, credits_repository, reports_repository, documents_repository):
        ensure_indexes(database, repository.INDEXES)
    ensure_indexes(database, failures.indexes())
