"""The secrets of the system by name. Values live in Secrets Manager; nothing but an ARN is ever configured."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SecretSpec:
    """One secret: `name` in Secrets Manager and on the command line, and who may be asked for it."""

    name: str
    description: str

    @property
    def setting(self) -> str:
        """The settings field that holds the value: `mongo_uri`."""
        return self.name.replace("-", "_")

    @property
    def env_key(self) -> str:
        """The environment variable that holds the secret's ARN: `MONGO_URI_SECRET_ARN`."""
        return f"{self.setting.upper()}_SECRET_ARN"

    def physical_name(self, stage: str) -> str:
        """Name in Secrets Manager: `sophia/dev/mongo-uri`."""
        return f"sophia/{stage}/{self.name}"


MONGO_URI = SecretSpec("mongo-uri", "connection string of the MongoDB replica set, user and password included")
OPENAI_API_KEY = SecretSpec("openai-api-key", "key for reports, embeddings and enrichment")
LANGFUSE_SECRET_KEY = SecretSpec("langfuse-secret-key", "secret half of the Langfuse key pair")
TURSO_AUTH_TOKEN = SecretSpec("turso-auth-token", "token of the search index where it is a Turso database")
API_KEYS = SecretSpec("api-keys", "JSON: role (bot, portal, admin) to a list of SHA-256 hex digests of bearer keys")

SECRETS: tuple[SecretSpec, ...] = (MONGO_URI, OPENAI_API_KEY, LANGFUSE_SECRET_KEY, TURSO_AUTH_TOKEN, API_KEYS)
