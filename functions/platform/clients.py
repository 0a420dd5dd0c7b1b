"""Clients of the handlers: made on first use, shared by warm invocations. Failures are not cached."""

import os
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from api_services import settings
from api_services.secret_values import read_secret

if TYPE_CHECKING:
    from api_services.delivery.failures import FailureStore
    from api_services.mongo import MongoDatabase
    from api_services.queues import QueueSpec
    from api_services.sqs import QueueSender
    from functions.platform.delivery import Delivery

S = TypeVar("S", bound=settings.Settings)


def load_settings(model: type[S]) -> S:
    """`model` from the environment and the secrets it names."""
    return settings.load(model, os.environ, read_secret)


@cache
def mongo_database() -> "MongoDatabase":
    """The shared database."""
    from api_services import mongo

    return mongo.connect(load_settings(settings.MongoSettings))


@cache
def queue_sender() -> "QueueSender":
    """A sender to the queues this function may send to."""
    from api_services import sqs

    return sqs.queue_sender(os.environ)


@cache
def failure_store() -> "FailureStore":
    """The failure store of the shared database."""
    from api_services.delivery.failures import MongoFailureStore

    return MongoFailureStore(mongo_database)


def delivery_for(spec: "QueueSpec[Any]") -> "Delivery":
    """The consumer's own queue and dead-letter queue."""
    from api_services import sqs
    from functions.platform.delivery import SqsDelivery

    urls = [os.environ.get(key) for key in (spec.url_env_key, spec.dlq_url_env_key)]
    queue_url, dlq_url = (sqs.resolve_queue_url(url, os.environ) if url else None for url in urls)
    return SqsDelivery(queue_url, dlq_url, sqs.sqs_client)
