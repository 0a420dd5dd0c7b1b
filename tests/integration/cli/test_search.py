"""`sophia search` and `sophia reconcile index` on a real index, a real database and the model of this machine."""

import json
from typing import Any

import pytest
from pydantic import SecretStr
from pymongo.database import Database

from api_services.documents.models import DocumentState
from api_services.documents.settings import IndexSettings
from api_services.settings import MongoSettings, OpenAISettings, Settings
from cli import app, stage_settings
from cli.reconcile import commands as reconcile_commands
from cli.search import commands as search_commands
from tests.integration.api_services.documents.conftest import llm, world
from tests.integration.api_services.documents.world import World, prose

pytestmark = pytest.mark.integration

__all__ = ["llm", "world"]


class FakeAccess:
    """A stage whose queue is nowhere: nothing is sent in these tests."""

    stage = "local"
    outputs = {"ingestQueue": "http://127.0.0.1:9/000000000000/ingest"}  # noqa: RUF012
    sqs = None


@pytest.fixture
def stage(
    world: World, monkeypatch: pytest.MonkeyPatch, mongo_uri: str, mongo_database: Database[dict[str, Any]]
) -> World:
    configured: dict[type[Settings], Settings] = {
        IndexSettings: IndexSettings(index_url=f"file:{world.index_path}"),
        OpenAISettings: OpenAISettings(openai_api_key=SecretStr("key"), openai_base_url=world.llm.base_url),
        MongoSettings: MongoSettings(mongo_uri=SecretStr(mongo_uri), mongo_database=mongo_database.name),
    }

    def of_the_stage(_access: object, model: type[Settings]) -> Settings:
        return configured[model]

    def opened(_stage: str) -> FakeAccess:
        return FakeAccess()

    monkeypatch.setattr(stage_settings, "stage_settings", of_the_stage)
    for module in (search_commands, reconcile_commands):
        monkeypatch.setattr(module, "open_stage", opened)
    return world


def test_hits_come_as_json(stage: World, capsys: pytest.CaptureFixture[str]) -> None:
    stage.index_document("guide", prose(3))
    assert app.run(["search", "alpha1word3", "--json", "--limit", "2"]) == 0
    page = json.loads(capsys.readouterr().out)
    assert page["hits"][0]["documentId"] == "guide"
    assert page["hits"][0]["highlights"]
    assert len(page["hits"]) == 2


def test_hits_are_shown_with_where_they_are(stage: World, capsys: pytest.CaptureFixture[str]) -> None:
    stage.index_document("guide", prose(3))
    assert app.run(["search", "alpha1word3", "--document", "guide"]) == 0
    shown = capsys.readouterr().out
    assert "1. Handbook" in shown
    assert "Section 1 of alpha" in shown
    assert "alpha1word3" in shown


def test_a_blank_query_is_one_sentence(stage: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["search", "  "]) == 2
    assert capsys.readouterr().err == "error (invalid_input): a query needs at least one character that is not blank\n"


def test_the_difference_is_shown_and_nothing_is_done_about_it(stage: World, capsys: pytest.CaptureFixture[str]) -> None:
    stage.approve("guide", prose(1))
    assert app.run(["reconcile", "index", "--min-age-minutes", "0", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["missing"] == ["guide"]
    assert stage.documents.get("guide").state is DocumentState.QUEUED
