"""Why messages died, from the failure store: also of those that SQS moved after their last receive."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pydantic import SecretStr

from api_services.delivery.failures import KeptFailure, find_failures
from api_services.errors import AppError, DependencyError
from api_services.mongo import connect, translated_errors
from api_services.secrets import MONGO_URI
from api_services.settings import MongoSettings

if TYPE_CHECKING:
    from cli.stage_access import StageAccess


def kept_failures(access: "StageAccess", queue: str, message_ids: Sequence[str]) -> Mapping[str, KeptFailure]:
    """The failures the stage's database keeps of these messages.

    Raises `DependencyError` where the secret has no value or the database is out of reach from here.
    """
    client = access.secretsmanager
    try:
        uri = client.get_secret_value(SecretId=MONGO_URI.physical_name(access.stage))["SecretString"]
    except client.exceptions.ResourceNotFoundException as exc:
        raise DependencyError(f"{MONGO_URI.name} of {access.stage} has no value", code="no_failure_store") from exc
    try:
        database = connect(MongoSettings(mongo_uri=SecretStr(uri)), app_name="sophia-cli")
        with translated_errors():
            found = find_failures(database, queue, message_ids)
    except AppError as exc:
        raise DependencyError(f"the failure store is out of reach: {exc.message}", code="no_failure_store") from exc
    database.client.close()
    return found
