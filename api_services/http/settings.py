"""What the API process reads from its environment. Imports pydantic only: infrastructure derives the task from it."""

from pydantic import SecretStr

from api_services.documents.settings import IndexSettings
from api_services.settings import EmbeddingSettings, MongoSettings, Text
from api_services.stages import LOCAL_STAGE


class ApiSettings(MongoSettings, EmbeddingSettings, IndexSettings):
    """Fields of type `SecretStr` are secrets; queue URLs come beside them, from the registry."""

    api_keys: SecretStr
    stage: Text = LOCAL_STAGE
    log_level: Text = "INFO"
