"""The composition root of the API process: settings in, collaborators out."""

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from functools import partial

from api_services import mongo, sqs
from api_services.credits.repository import CreditRepository
from api_services.documents.repository import DocumentRepository
from api_services.errors import DependencyError
from api_services.http.auth import ApiKeys
from api_services.http.dependencies import ApiDependencies
from api_services.http.search import LazySearch, SearchParts
from api_services.http.settings import ApiSettings
from api_services.indexes import ensure_all_indexes
from api_services.interviews.repository import InterviewRepository
from api_services.queues import API, queues_sent_by
from api_services.reports.repository import ReportRepository
from api_services.settings import OpenAISettings
from api_services.stages import LOCAL_STAGE


@contextmanager
def connected(settings: ApiSettings, environ: Mapping[str, str]) -> Generator[ApiDependencies]:
    """Everything the routes need, connected. Raises `ConfigurationError` or `DependencyError` with the remedy."""
    keys = ApiKeys.parse(settings.api_keys.get_secret_value())
    database = mongo.connect(settings, app_name="sophia-api")
    search = LazySearch(partial(open_search_parts, settings))
    try:
        ensure_all_indexes(database)
        yield ApiDependencies(
            keys=keys,
            interviews=InterviewRepository(database),
            credits=CreditRepository(database),
            reports=ReportRepository(database),
            documents=DocumentRepository(database),
            sender=sqs.queue_sender(environ),
            search=search,
            secure_cookies=settings.stage != LOCAL_STAGE,
            checks={"mongodb": _mongo_check(database), **_queue_checks(environ)},
        )
    finally:
        search.close()
        database.client.close()


def open_search_parts(settings: ApiSettings) -> SearchParts:
    """The index and the model that embeds queries; imported by the first search, since the rest needs neither."""
    from api_services.documents.connect import open_index, query_embedder
    from api_services.tracing import NoTracer

    openai = OpenAISettings(
        openai_api_key=settings.openai_api_key,
        openai_base_url=settings.openai_base_url,
        embedding_model=settings.embedding_model,
    )
    return open_index(settings), query_embedder(openai, NoTracer())


def _mongo_check(database: mongo.MongoDatabase) -> Callable[[], None]:
    def check() -> None:
        mongo.ping(database)

    return check


def _queue_checks(environ: Mapping[str, str]) -> dict[str, Callable[[], None]]:
    """One check per queue whose URL is set: asks for an attribute, which needs no more rights than sending does."""

    def check_of(url: str) -> Callable[[], None]:
        def check() -> None:
            sqs.check_queue(url)

        return check

    found: dict[str, Callable[[], None]] = {}
    for spec in queues_sent_by(API):
        url = environ.get(spec.url_env_key)
        if url:
            found[spec.name] = check_of(sqs.resolve_queue_url(url, environ))
        else:
            found[spec.name] = _missing(spec.url_env_key)
    return found


def _missing(key: str) -> Callable[[], None]:
    def check() -> None:
        raise DependencyError(f"{key} is not set, so nothing is sent to that queue", code="queue_url_missing")

    return check
