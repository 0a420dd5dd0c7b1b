"""Settings of the search index."""

from pydantic import SecretStr

from api_services.settings import Settings, Text


class IndexSettings(Settings):
    """Where the index is: a file of this machine, or a libSQL server by URL with its token."""

    index_url: Text = "file:.sophia/index.db"
    turso_auth_token: SecretStr | None = None
    embedding_model: Text = "text-embedding-3-small"
