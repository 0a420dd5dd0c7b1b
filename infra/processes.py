"""What every process, function or API, gets by declared use: its queues, secrets and settings."""

from collections.abc import Iterable, Mapping

from api_services.queues import queues_sent_by
from api_services.secrets import SecretSpec
from infra.access import Access
from infra.components.queue_pair import QueuePair
from infra.components.stage_secrets import StageSecrets
from infra.config import StageConfig


def declared_access(
    producer: str,
    config: StageConfig,
    pairs: Mapping[str, QueuePair],
    secrets: StageSecrets,
    *,
    reads: Iterable[SecretSpec],
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
    for spec in reads:
        secrets.grant_read(access, spec)
    for spec in queues_sent_by(producer):
        pairs[spec.name].grant_send(access)
    return access
