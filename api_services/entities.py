"""What stored things have in common: immutable, camelCase where stored and on the wire, snake_case in Python."""

from typing import Annotated, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

MAX_CREDITS = 1_000_000_000
"""Upper bound of one amount; sums of millions of them still fit MongoDB's 64-bit integers."""

Credits = Annotated[int, Field(strict=True, ge=0, le=MAX_CREDITS)]
"""A whole number of credits; floats, strings and booleans are refused."""

PositiveCredits = Annotated[int, Field(strict=True, ge=1, le=MAX_CREDITS)]

T = TypeVar("T")


class Entity(BaseModel):
    """Base of stored things; unknown stored fields are ignored, since older and newer code share one database."""

    model_config = ConfigDict(
        frozen=True,
        extra="ignore",
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        defer_build=True,
    )


class Page(Entity, Generic[T]):
    """A bounded part of a list; `next_cursor` continues it, none ends it."""

    items: list[T]
    next_cursor: str | None = None
