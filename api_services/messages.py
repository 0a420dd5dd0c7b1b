"""What every queue message has in common. Imports pydantic only: the registry and the producers rest on it."""

from datetime import UTC, datetime
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AwareDatetime, BaseModel, ConfigDict, StringConstraints
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


M = TypeVar("M", bound=Message)

_NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
_EXAMPLES: dict[Any, Any] = {str: "example-1", int: 1, bool: True, datetime: _NOON, AwareDatetime: _NOON}


def example(model: type[M]) -> M:
    """A valid message of this type: what its fields state as `examples`, else a plain value of the field's type.

    Raises pydantic's `ValidationError` for a field whose rules need an example of their own.
    """
    values: dict[str, Any] = {
        name: field.examples[0] if field.examples else _EXAMPLES.get(field.annotation)
        for name, field in model.model_fields.items()
        if field.is_required()
    }
    return model.model_validate(values)
