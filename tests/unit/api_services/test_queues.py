"""The registry: what is derived from one entry, and what an entry may not say."""

import dataclasses
import subprocess
import sys

import pytest
from pydantic import ValidationError

from api_services.function_spec import QUEUE_NAME_MAX, physical_name
from api_services.interviews.messages import InterviewCompleted, InterviewFailed
from api_services.messages import Message, example
from api_services.queues import (
    INGEST,
    INTERVIEW_COMPLETED,
    QUEUES,
    REPORT_GENERATE,
    STANDALONE,
    QueueSpec,
    queue_named,
    queues_sent_by,
)
from api_services.schedules import SCHEDULES

COMPLETED = (
    '{"type":"interview.completed","interviewId":"iv-1","organizationId":"org-1","endedAt":"2026-03-01T10:00:00Z"}'
)
FAILED = (
    '{"type":"interview.failed","interviewId":"iv-1","organizationId":"org-1","endedAt":"2026-03-01T10:00:00Z",'
    '"failureCode":"candidate_left"}'
)


def test_the_outputs_have_the_names_that_operators_and_the_api_rely_on() -> None:
    assert {(spec.output, spec.dlq_output, spec.url_env_key) for spec in QUEUES} >= {
        ("interviewCompletedQueue", "interviewCompletedDlq", "INTERVIEW_COMPLETED_QUEUE_URL"),
        ("reportGenerateQueue", "reportGenerateDlq", "REPORT_GENERATE_QUEUE_URL"),
        ("ingestQueue", "ingestDlq", "INGEST_QUEUE_URL"),
    }


def test_no_two_queues_share_a_name_or_an_output() -> None:
    everything = (*QUEUES, *STANDALONE, *SCHEDULES)
    assert len({spec.name for spec in everything}) == len(everything)
    assert len({spec.dlq_output for spec in everything}) == len(everything)


def test_visibility_is_derived_unless_it_is_stated() -> None:
    assert INTERVIEW_COMPLETED.visibility_timeout_seconds == 6 * 60
    assert dataclasses.replace(INTERVIEW_COMPLETED, batching_window_seconds=5).visibility_timeout_seconds == 365
    assert REPORT_GENERATE.visibility_timeout_seconds == 6 * 300
    assert INGEST.visibility_timeout_seconds == 940


def test_the_figures_of_the_contract_stand_in_the_registry() -> None:
    figures = {
        spec.name: (spec.function_timeout_seconds, spec.batch_size, spec.max_receive_count, spec.dlq_retention_days)
        for spec in QUEUES
    }
    contract = {
        "interview-completed": (60, 10, 3, 14),
        "report-generate": (300, 1, 3, 14),
        "ingest": (900, 1, 3, 14),
    }
    assert {name: figures[name] for name in contract} == contract
    assert INGEST.memory_mb == 512


def test_a_settled_interview_leads_to_a_report_and_ingest_may_hand_on_its_own_work() -> None:
    assert REPORT_GENERATE in INTERVIEW_COMPLETED.sends_to
    assert INGEST in INGEST.sends_to
    assert {INTERVIEW_COMPLETED, INGEST} <= set(queues_sent_by("api"))


def test_every_producer_is_the_api_a_queue_or_a_schedule() -> None:
    known = {"api"} | {spec.name for spec in QUEUES} | {spec.name for spec in SCHEDULES}
    assert {producer for spec in (*QUEUES, *STANDALONE) for producer in spec.producers} <= known


def test_one_queue_takes_the_bodies_of_completed_and_failed_interviews() -> None:
    assert isinstance(INTERVIEW_COMPLETED.adapter.validate_json(COMPLETED), InterviewCompleted)
    assert isinstance(INTERVIEW_COMPLETED.adapter.validate_json(FAILED), InterviewFailed)


@pytest.mark.parametrize(
    "body",
    [
        COMPLETED.replace("}", ',"extra":1}'),
        COMPLETED.replace("iv-1", "iv 1"),
        COMPLETED.replace("iv-1", "x" * 65),
        COMPLETED.replace("Z", ""),
        '{"interviewId":"iv-1"}',
        "[]",
        '"text"',
    ],
)
def test_a_body_that_does_not_fit_the_schema_is_refused(body: str) -> None:
    with pytest.raises(ValidationError):
        INTERVIEW_COMPLETED.adapter.validate_json(body)


def test_what_a_producer_writes_is_camel_case_and_reads_back_equal() -> None:
    message = INTERVIEW_COMPLETED.adapter.validate_json(COMPLETED)
    assert '"interviewId":"iv-1"' in message.body()
    assert INTERVIEW_COMPLETED.adapter.validate_json(message.body()) == message


@pytest.mark.parametrize("spec", [*QUEUES, *STANDALONE], ids=lambda spec: spec.name)
def test_every_message_of_a_queue_has_an_example_that_its_consumer_reads(spec: QueueSpec[Message]) -> None:
    for model in spec.messages:
        message = example(model)
        assert spec.adapter.validate_json(message.body()) == message


def test_two_long_stage_names_that_share_their_beginning_get_four_different_queue_names() -> None:
    stem = "feature-candidate-scorecard-regeneration-with-retries-and-budget-caps-"
    spec = dataclasses.replace(REPORT_GENERATE, fifo=True)
    names = [name for end in "ab" for name in (spec.physical_name(stem + end), spec.dlq_physical_name(stem + end))]
    assert len(set(names)) == 4
    assert all(len(name) <= QUEUE_NAME_MAX and name.endswith(".fifo") for name in names)
    assert names[0] == spec.physical_name(f"{stem}a"), "the same input gives the same name"


def test_a_short_name_is_left_as_it_is() -> None:
    assert physical_name("dev", "ingest") == "sophia-dev-ingest"
    assert physical_name("dev", "ingest-dlq", fifo=True) == "sophia-dev-ingest-dlq.fifo"


@pytest.mark.parametrize("name", ["Ingest", "in_gest", "-ingest", "ingest-", "9lives", ""])
def test_a_queue_name_is_lower_case_words_joined_by_hyphens(name: str) -> None:
    with pytest.raises(ValueError, match="lower-case words"):
        QueueSpec[Message](
            name=name,
            purpose="",
            messages=(InterviewCompleted,),
            producers=(),
            function_timeout_seconds=1,
            memory_mb=128,
            batch_size=1,
            max_concurrency=2,
            secrets=(),
        )


def test_an_unknown_queue_is_answered_with_the_known_names() -> None:
    with pytest.raises(KeyError, match=f"there are {QUEUES[0].name}, "):
        queue_named("interviews")


def test_the_registry_imports_no_driver_and_no_sdk() -> None:
    heavy = ("pymongo", "bson", "boto3", "botocore", "openai", "pulumi", "fastapi", "libsql")
    code = f"import sys, api_services.queues, api_services.schedules; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout.strip() == "[]"
