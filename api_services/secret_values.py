"""Reading secrets' values. The client comes from botocore, on the first read."""

import os
from typing import Any

from api_services.errors import ConfigurationError, DependencyError

_NOT_OURS_TO_RETRY = frozenset(
    {"ResourceNotFoundException", "AccessDeniedException", "InvalidParameterException", "ValidationException"}
)


def read_secret(arn: str) -> str:
    """The value of a secret, within a few seconds.

    Raises `ConfigurationError` where it is missing, empty or forbidden, `DependencyError` where there is no answer.
    """
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError, ClientError
    from botocore.session import get_session

    config = Config(connect_timeout=2, read_timeout=3, retries={"mode": "standard", "total_max_attempts": 2})
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    try:
        client: Any = get_session().create_client("secretsmanager", region_name=region, config=config)
        value: str | None = client.get_secret_value(SecretId=arn).get("SecretString")
    except ClientError as exc:
        reason = exc.response.get("Error", {}).get("Code", "")
        if reason in _NOT_OURS_TO_RETRY:
            raise ConfigurationError(
                f"Secret {arn} cannot be read ({reason}). Set it with `./sophia secrets set`, and check the role."
            ) from exc
        raise DependencyError(f"Secrets Manager answered {reason}.", code="secrets_unavailable") from exc
    except BotoCoreError as exc:
        raise DependencyError(
            f"Secrets Manager did not answer ({type(exc).__name__}).", code="secrets_unavailable"
        ) from exc
    if not value:
        raise ConfigurationError(f"Secret {arn} is empty. Set it with `./sophia secrets set`.")
    return value
