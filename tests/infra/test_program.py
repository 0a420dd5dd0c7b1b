"""What must hold of everything the program declares, on every stage."""

import json
import re
from typing import Any, cast

import pulumi
import pytest

from api_services.http.settings import ApiSettings
from api_services.queues import API, QUEUES, QueueSpec, queues_sent_by
from api_services.schedules import SCHEDULES, ScheduleSpec
from api_services.secrets import SECRETS, SecretSpec
from infra.rules import resource_types as kind
from infra.rules.gate import keep_renamed
from infra.rules.security import OUTPUT_MARKERS
from tests.infra.engine import ROOT, Engine, Recorded, run_program, stage_values
from tests.infra.snapshot import as_text

DOCUMENTS = {
    "policy",
    "assumeRolePolicy",
    "redrivePolicy",
    "redriveAllowPolicy",
    "containerDefinitions",
    "dashboardBody",
}


def environment_of(engine: Engine, function: str) -> dict[str, str]:
    (found,) = [item for item in engine.of(kind.FUNCTION) if item.name == f"{function}-function"]
    return found.inputs["environment"]["variables"]


def texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for item in cast("dict[str, Any]", value).values() for text in texts(item)]
    if isinstance(value, list):
        return [text for item in cast("list[Any]", value) for text in texts(item)]
    return []


def documents(engine: Engine) -> list[tuple[Recorded, str, Any]]:
    return [
        (item, key, json.loads(value))
        for item in engine.resources
        for key, value in item.inputs.items()
        if key in DOCUMENTS
    ]


def test_every_event_source_mapping_reports_batch_item_failures_and_nothing_else(engine: Engine) -> None:
    mappings = engine.of(kind.MAPPING)
    assert len(mappings) == len(QUEUES)
    for mapping in mappings:
        assert mapping.inputs["functionResponseTypes"] == ["ReportBatchItemFailures"]
        assert 2 <= mapping.inputs["scalingConfig"]["maximumConcurrency"] <= 1000


@pytest.mark.parametrize("spec", QUEUES, ids=lambda spec: spec.name)
def test_a_consumer_gets_every_setting_it_declares(engine: Engine, spec: QueueSpec[Any]) -> None:
    environment = environment_of(engine, f"{spec.name}-consumer")
    wanted = {spec.url_env_key, spec.dlq_url_env_key, "STAGE", "LOG_LEVEL", "MONGO_DATABASE"}
    wanted |= {target.url_env_key for target in queues_sent_by(spec.name)}
    config = engine.variables["config"]
    wanted |= {secret.env_key for secret in spec.secrets if secret in config.secrets}
    wanted |= {name.upper() for name in spec.settings if name in config.settings}
    assert set(environment) == wanted
    assert all(environment.values())


@pytest.mark.parametrize("spec", SCHEDULES, ids=lambda spec: spec.name)
def test_a_scheduled_function_gets_every_setting_it_declares(engine: Engine, spec: ScheduleSpec) -> None:
    environment = environment_of(engine, spec.name)
    config = engine.variables["config"]
    wanted = {"STAGE", "LOG_LEVEL", "MONGO_DATABASE"} | {target.url_env_key for target in queues_sent_by(spec.name)}
    wanted |= {secret.env_key for secret in spec.secrets if secret in config.secrets}
    wanted |= {name.upper() for name in spec.settings if name in config.settings}
    assert set(environment) == wanted


def test_the_api_gets_every_field_of_its_settings_and_the_queues_it_sends_to(dev: Engine) -> None:
    (task,) = dev.of(kind.TASK)
    (container,) = json.loads(task.inputs["containerDefinitions"])
    keys = {pair["name"] for pair in container["environment"]}
    assert {target.url_env_key for target in queues_sent_by(API)} <= keys
    required = {name for name, field in ApiSettings.model_fields.items() if field.is_required()}
    for name in required:
        assert {name.upper(), f"{name.upper()}_SECRET_ARN"} & keys, f"{name} is missing"
    assert "INTERVIEW_COMPLETED_QUEUE_URL" in keys
    assert not [pair for pair in container["environment"] if not pair["value"]]
    assert container["readonlyRootFilesystem"] is True
    assert container["user"] not in ("", "0", "root")


def test_no_secret_has_a_value_and_no_environment_holds_one(engine: Engine) -> None:
    assert not [item.name for item in engine.resources if "secretVersion" in item.type]
    names = {secret.setting.upper() for secret in SECRETS}
    for function in engine.of(kind.FUNCTION):
        assert not names & set(function.inputs["environment"]["variables"])


def test_no_input_holds_an_output_formatted_as_text(engine: Engine) -> None:
    for item in engine.resources:
        for text in texts(item.inputs):
            assert not any(marker in text for marker in OUTPUT_MARKERS), f"{item.name}: {text}"


def test_documents_are_canonical_json_with_numbers_as_numbers(engine: Engine) -> None:
    for item in engine.resources:
        for key in DOCUMENTS & item.inputs.keys():
            text = item.inputs[key]
            assert text == json.dumps(json.loads(text), sort_keys=True, separators=(",", ":")), item.name
    for policy in engine.of(kind.REDRIVE):
        assert type(json.loads(policy.inputs["redrivePolicy"])["maxReceiveCount"]) is int


def test_every_arn_in_a_document_is_one_of_this_stage(engine: Engine) -> None:
    known = {f"arn:aws:{item.type.split(':')[1].split('/')[0]}" for item in engine.resources}
    stage = engine.variables["config"].stage
    for item, key, document in documents(engine):
        for text in texts(document):
            if text.startswith("arn:aws:sqs:"):
                assert re.fullmatch(rf"arn:aws:sqs:eu-west-1:123456789012:sophia-{stage}-[a-z-]+", text), (item, key)
            elif text.startswith("arn:aws:") and not text.startswith(("arn:aws:iam::", "arn:aws:logs:")):
                assert any(text.startswith(prefix) for prefix in known), f"{item.name}: {text}"


def test_redrive_and_redrive_allow_name_exactly_each_other(engine: Engine) -> None:
    arns = {item.name: f"arn:aws:sqs:eu-west-1:123456789012:{item.inputs['name']}" for item in engine.of(kind.QUEUE)}
    for spec in QUEUES:
        (redrive,) = [item for item in engine.of(kind.REDRIVE) if item.name == f"{spec.name}-redrive"]
        (allow,) = [item for item in engine.of(kind.REDRIVE_ALLOW) if item.name == f"{spec.name}-redrive-allow"]
        assert json.loads(redrive.inputs["redrivePolicy"]) == {
            "deadLetterTargetArn": arns[f"{spec.name}-dlq"],
            "maxReceiveCount": spec.max_receive_count,
        }
        assert json.loads(allow.inputs["redriveAllowPolicy"]) == {
            "redrivePermission": "byQueue",
            "sourceQueueArns": [arns[f"{spec.name}-queue"]],
        }


def test_a_consumer_may_do_what_it_declares_and_nothing_else(dev: Engine) -> None:
    (policy,) = [item for item in dev.of(kind.ROLE_POLICY) if item.name == "interview-completed-consumer-policy"]
    statements = {item["Sid"]: item for item in json.loads(policy.inputs["policy"])["Statement"]}
    assert set(statements) == {"Consume", "DeadLetter", "DecryptSecrets", "Log", "ReadSecrets", "Send", "Trace"}
    sqs = "arn:aws:sqs:eu-west-1:123456789012:sophia-dev"
    assert statements["Send"] == {
        "Sid": "Send",
        "Effect": "Allow",
        "Action": ["sqs:SendMessage"],
        "Resource": [f"{sqs}-report-generate"],
    }
    assert statements["DeadLetter"]["Resource"] == [f"{sqs}-interview-completed-dlq"]
    assert statements["Consume"]["Resource"] == [f"{sqs}-interview-completed"]
    assert statements["ReadSecrets"]["Resource"] == [
        "arn:aws:secretsmanager:eu-west-1:123456789012:sophia/dev/mongo-uri"
    ]


def test_the_operator_works_on_dead_letters_of_this_stage_alone(dev: Engine) -> None:
    (policy,) = [item for item in dev.of(kind.ROLE_POLICY) if item.name == "operator-policy"]
    statements = {item["Sid"]: item for item in json.loads(policy.inputs["policy"])["Statement"]}
    work = statements["WorkOnDeadLetters"]
    assert {"sqs:StartMessageMoveTask", "sqs:PurgeQueue", "sqs:ReceiveMessage", "sqs:DeleteMessage"} <= set(
        work["Action"]
    )
    assert len(work["Resource"]) == len(QUEUES) + len(SCHEDULES)
    assert all(arn.endswith("-dlq") for arn in work["Resource"])
    assert statements["PauseAndResume"]["Action"] == ["lambda:GetEventSourceMapping", "lambda:UpdateEventSourceMapping"]
    assert "*" not in texts(json.loads(policy.inputs["policy"]))


def test_no_role_outgrows_what_iam_takes_as_inline_policies(engine: Engine) -> None:
    for policy in engine.of(kind.ROLE_POLICY):
        assert len(policy.inputs["policy"]) < 10_240, policy.name


def test_the_name_of_a_child_begins_with_its_components(engine: Engine) -> None:
    children = [item for item in engine.resources if item.parent]
    assert children
    for item in children:
        assert item.name.startswith(item.parent.split("::")[1]), f"{item.name} belongs to {item.parent}"


def test_every_stage_has_exactly_these_outputs(engine: Engine) -> None:
    of_queues = {output for spec in QUEUES for output in (spec.output, spec.dlq_output)}
    assert {"interviewCompletedQueue", "interviewCompletedDlq", "reportGenerateQueue", "reportGenerateDlq"} <= of_queues
    expected = of_queues | {spec.dlq_output for spec in SCHEDULES}
    expected |= {"functions", "jobs", "mappings", "secretArns", "alarmTopicArn", "operatorRoleArn"}
    if engine.variables["config"].api is not None:
        expected |= {"apiUrl", "apiRepositoryUrl"}
    assert set(engine.outputs) == expected
    assert engine.outputs["interviewCompletedQueue"].startswith("https://sqs.")


def test_a_stage_creates_only_the_secrets_it_uses(engine: Engine) -> None:
    config = engine.variables["config"]
    made = {item.inputs["name"] for item in engine.of("aws:secretsmanager/secret:Secret")}
    assert made == {secret.physical_name(config.stage) for secret in config.secrets}
    unused: SecretSpec = next(secret for secret in SECRETS if secret.name == "langfuse-secret-key")
    assert unused.physical_name(config.stage) not in made


@pytest.mark.parametrize("folder", ["infra", "/"])
def test_the_program_declares_the_same_from_any_folder(
    dev: Engine, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT / folder)
    assert as_text(run_program("dev")) == as_text(dev)


def test_stateful_resources_are_protected_in_prod(stages: dict[str, Engine]) -> None:
    stateful = {kind.QUEUE, kind.KEY, "aws:secretsmanager/secret:Secret", "aws:ecr/repository:Repository"}
    found = [item for item in stages["prod"].resources if item.type in stateful]
    assert {item.type for item in found} == stateful
    assert all(item.protect for item in found)
    assert not any(item.protect for item in stages["local"].resources)


def test_a_queue_is_given_up_only_by_name() -> None:
    engine = run_program("dev", stage_values("dev", loseMessagesOf=["ingest"]))
    given_up = {item.name for item in engine.of(kind.QUEUE) if not item.protect}
    assert given_up == {"ingest-queue", "ingest-dlq"}


def test_tracing_of_llm_calls_brings_its_secret_and_its_settings() -> None:
    values = stage_values("dev", langfusePublicKey="pk-example", langfuseBaseUrl="https://langfuse.example.com")
    environment = environment_of(run_program("dev", values), "report-generate-consumer")
    assert environment["LANGFUSE_BASE_URL"] == "https://langfuse.example.com"
    assert environment["LANGFUSE_PUBLIC_KEY"] == "pk-example"
    assert environment["LANGFUSE_SECRET_KEY_SECRET_ARN"].endswith("sophia/dev/langfuse-secret-key")


def test_without_an_image_only_the_repository_is_built() -> None:
    engine = run_program("dev", stage_values("dev", apiImageTag=None))
    assert not engine.of("aws:ecs/service:Service")
    assert len(engine.of("aws:ecr/repository:Repository")) == 1
    assert "apiUrl" not in engine.outputs
    assert "apiRepositoryUrl" in engine.outputs


def test_a_renamed_resource_keeps_its_former_name_as_an_alias() -> None:
    rename = keep_renamed({"new": ("old", "older")})
    args = pulumi.ResourceTransformationArgs(
        resource=object.__new__(pulumi.CustomResource), type_="t", name="new", props={}, opts=pulumi.ResourceOptions()
    )
    result = rename(args)
    assert result is not None
    aliases = result.opts.aliases
    assert isinstance(aliases, list)
    assert [alias.name for alias in aliases if isinstance(alias, pulumi.Alias)] == ["old", "older"]
    args.name = "other"
    assert rename(args) is None
