"""What every queue message has in common. Imports pydantic only: the registry and the producers rest on it."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, StringConstraints
from pydantic.alias_generators import to_camel

Identifier = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$")]
"""An id as it travels in messages, URLs and logs: 1 to 64 characters, none that needs escaping."""


class Message(BaseModel):
    """The body of a queue message: immutable, camelCase on the wire, unknown fields refused."""

    # Built on first use: a consumer imports the messages of all queues and reads those of one.
    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        defer_build=True,
    )

    schema_version: Literal[1] = 1

    def body(self) -> str:
        """The JSON that goes on the wire, without the two characters above U+001F that SQS refuses unescaped."""
        return self.model_dump_json(by_alias=True).replace("\ufffe", "\\ufffe").replace("\uffff", "\\uffff")
