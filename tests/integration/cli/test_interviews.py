"""`reports` and `reconcile interviews` on a real database and the emulator's queues."""

import json
import uuid
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from pydantic import SecretStr
from typer.testing import CliRunner

import cli.stage_settings
from api_services.clock import utc_now
from api_services.errors import DependencyError, InvalidStateError, NotFoundError
from api_services.llm.client import RefusedAnswerError
from api_services.llm.costs import TokenUsage
from api_services.queues import INTERVIEW_COMPLETED, REPORT_GENERATE
from api_services.reports.models import ReportStatus
from api_services.reports.service import get_report
from api_services.settings import MongoSettings
from cli.reconcile import commands as reconcile_commands
from cli.reports import commands as reports_commands
from cli.stage_access import StageAccess
from local.emulator import Emulator
from tests.integration.api_services.reports.test_service import FakeLanguageModel, Reporter
from tests.support.worlds import World

pytestmark = pytest.mark.integration


@pytest.fixture
def world(mongo_database: Any) -> World:
    return World(mongo_database)


@pytest.fixture
def stage(world: World, mongo_uri: str, emulator: Emulator, monkeypatch: pytest.MonkeyPatch) -> Iterator[StageAccess]:
    session = boto3.Session(aws_access_key_id="test", aws_secret_access_key="test", region_name="eu-west-1")
    outputs: dict[str, str] = {}
    access = StageAccess("local", outputs, session, emulator.endpoint_url)
    for spec in (INTERVIEW_COMPLETED, REPORT_GENERATE):
        outputs[spec.output] = access.sqs.create_queue(QueueName=f"{spec.name}-{uuid.uuid4().hex[:8]}")["QueueUrl"]

    def settings_of(access: Any, model: Any) -> Any:
        assert model is MongoSettings
        return MongoSettings(mongo_uri=SecretStr(mongo_uri), mongo_database=world.database.name)

    def opened(name: str) -> StageAccess:
        assert name == "local"
        return access

    monkeypatch.setattr(cli.stage_settings, "stage_settings", settings_of)
    for commands in (reports_commands, reconcile_commands):
        monkeypatch.setattr(commands, "open_stage", opened)
    yield access
    for url in outputs.values():
        access.sqs.delete_queue(QueueUrl=url)


def run(app: Any, *arguments: str) -> Any:
    result = CliRunner().invoke(app, [*arguments, "--json"], catch_exceptions=False)
    assert result.exit_code == 0
    return json.loads(result.stdout)


def waiting(stage: StageAccess, output: str) -> list[Any]:
    answer = stage.sqs.receive_message(QueueUrl=stage.outputs[output], MaxNumberOfMessages=10)
    return [json.loads(message.get("Body", "")) for message in answer.get("Messages", [])]


def test_a_failed_report_is_listed_and_reset_only_with_execute(world: World, stage: StageAccess) -> None:
    interview_id = world.settled().interview_id
    Reporter(world, FakeLanguageModel(RefusedAnswerError("no", TokenUsage()))).deliver(interview_id)
    (listed,) = run(reports_commands.app, "list")
    assert (listed["interviewId"], listed["failureCode"]) == (interview_id, "refused")
    run(reports_commands.app, "reset", interview_id)
    assert get_report(world.reports, world.interviews, interview_id).status is ReportStatus.FAILED
    assert waiting(stage, REPORT_GENERATE.output) == []
    (reset,) = run(reports_commands.app, "reset", interview_id, "--execute")
    assert (reset["status"], reset["attemptCount"]) == ("NOT_STARTED", 0)
    assert [body["interviewId"] for body in waiting(stage, REPORT_GENERATE.output)] == [interview_id]
    assert run(reports_commands.app, "list") == []


def test_a_written_report_is_shown_and_not_reset(world: World, stage: StageAccess) -> None:
    interview_id = world.settled().interview_id
    Reporter(world, FakeLanguageModel()).deliver(interview_id)
    (shown,) = run(reports_commands.app, "show", interview_id)
    assert shown["content"]["overallScore"] == 70
    with pytest.raises(InvalidStateError):
        run(reports_commands.app, "reset", interview_id, "--execute")
    with pytest.raises(NotFoundError):
        run(reports_commands.app, "show", "iv-unknown")


def test_gaps_are_shown_and_closed_only_with_execute(world: World, stage: StageAccess) -> None:
    unsettled = world.completed()
    unreported = world.completed()
    world.queue.fail_with = DependencyError("SQS does not answer")
    world.settle(unreported)
    found = run(reconcile_commands.app, "interviews")
    assert found == {
        "unsettled": 1,
        "withoutReport": 1,
        "expiredLeases": 0,
        "complete": True,
        "executed": False,
    }
    assert waiting(stage, INTERVIEW_COMPLETED.output) == []
    world.interviews.mark_enqueued([unsettled.interview_id], utc_now())
    assert run(reconcile_commands.app, "interviews")["unsettled"] == 0, "enqueued less than 15 minutes ago"
    world.interviews.mark_enqueued([unsettled.interview_id], world.now)
    assert run(reconcile_commands.app, "interviews", "--execute")["executed"] is True
    assert [body["interviewId"] for body in waiting(stage, INTERVIEW_COMPLETED.output)] == [unsettled.interview_id]
    assert [body["interviewId"] for body in waiting(stage, REPORT_GENERATE.output)] == [unreported.interview_id]


def test_an_account_whose_lots_and_ledger_differ_is_reported_and_left_as_it_is(
    world: World, stage: StageAccess
) -> None:
    world.grant(100)
    assert run(reconcile_commands.app, "credits") == []
    world.database["creditLots"].update_one({}, {"$set": {"remaining": 0}})
    before = world.snapshot()
    result = CliRunner().invoke(reconcile_commands.app, ["credits"], catch_exceptions=False)
    assert result.exit_code == 1
    assert "acme" in result.stdout
    assert world.snapshot() == before
