"""What request bodies have in common."""

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class Input(BaseModel):
    """Base of request bodies: camelCase, unknown fields refused."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, validate_by_name=False, validate_by_alias=True
    )
