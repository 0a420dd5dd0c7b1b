"""What strict mode accepts, and that everything we send is accepted."""

import importlib
import pkgutil
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field

import api_services
from api_services.llm.schemas import StructuredOutput, strict_schema


class Inner(StructuredOutput):
    """A described definition."""

    word: str


class FreeForm(StructuredOutput):
    scores: dict[str, float]


class Defaulted(StructuredOutput):
    note: str | None = None


class DefaultedList(StructuredOutput):
    tags: list[str] = []  # noqa: RUF012  (the default is the point)


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    word: str


class Bounded(StructuredOutput):
    word: Annotated[str, Field(max_length=10)]


class Anything(StructuredOutput):
    value: Any


class Strict(StructuredOutput):
    note: str | None
    tags: list[str]
    kind: Literal["a", "b"]
    score: Annotated[int, Field(ge=1, le=5)]
    inner: Annotated[Inner, Field(description="A description beside a reference")]


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (FreeForm, "the object is not closed"),
        (Defaulted, "'default' is not permitted"),
        (DefaultedList, "not required: tags"),
        (Open, "the object is not closed"),
        (Bounded, "'maxLength' is not permitted"),
        (Anything, "anything would fit"),
    ],
)
def test_a_model_that_strict_mode_refuses_is_refused_here_first(model: type[BaseModel], reason: str) -> None:
    with pytest.raises(ValueError, match=f"{model.__name__} is not a strict schema: .*{reason}"):
        strict_schema(model)


def test_nullable_fields_lists_enums_and_bounds_are_accepted() -> None:
    schema = strict_schema(Strict)
    assert schema["required"] == ["note", "tags", "kind", "score", "inner"]
    assert schema["properties"]["inner"] == {"$ref": "#/$defs/Inner"}


def sent_models() -> list[type[StructuredOutput]]:
    for module in pkgutil.walk_packages(api_services.__path__, "api_services."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    found: list[type[StructuredOutput]] = []
    waiting = list(StructuredOutput.__subclasses__())
    while waiting:
        model = waiting.pop()
        waiting.extend(model.__subclasses__())
        if model.__module__.startswith("api_services."):
            found.append(model)
    return found


def test_every_model_that_is_sent_is_strict() -> None:
    models = sent_models()
    assert "ReportContent" in {model.__name__ for model in models}
    for model in models:
        strict_schema(model)
