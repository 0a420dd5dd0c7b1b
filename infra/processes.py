"""What every process, function or API, gets by declared use: its queues, secrets and settings."""

from collections.abc import Iterable, Mapping

from api_services.queues import queues_sent_by
from api_services.secrets import SecretSpec
from infra.access import Access
from infra.components.queue_pair import QueuePair
from infra.config import StageConfig
from infra.foundation import Foundation


def declared_access(
    producer: str,
    config: StageConfig,
    foundation: Foundation,
    pairs: Mapping[str, QueuePair],
    secrets: Iterable[SecretSpec],
    settings: Iterable[str],
) -> Access:
    """Rights and environment of the process that the registries call `producer`."""
    access = Access()
    access.set("STAGE", config.stage)
    access.set("LOG_LEVEL", config.log_level)
    access.set("MONGO_DATABASE", config.mongo_database)
    for name in settings:
        if name in config.settings:
            access.set(name.upper(), config.settings[name])
    for secret in secrets:
        foundation.secrets.grant_read(access, secret)
    for spec in queues_sent_by(producer):
        pairs[spec.name].grant_send(access)
    return access
