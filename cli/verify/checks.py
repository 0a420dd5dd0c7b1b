"""What must hold of a deployed stage, each one finding with its remedy. Everything is asked of AWS, nothing assumed."""

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from botocore.exceptions import BotoCoreError, ClientError

from api_services.errors import AppError
from api_services.queues import QUEUES, QueueSpec
from api_services.secrets import LANGFUSE_SECRET_KEY
from api_services.stages import LOCAL_STAGE
from cli.queue.lib import url_of
from cli.secrets.lib import states as secret_states
from cli.verify.tracing import check_trace, tracing_settings

if TYPE_CHECKING:
    from types_boto3_lambda import LambdaClient
    from types_boto3_logs import CloudWatchLogsClient
    from types_boto3_secretsmanager import SecretsManagerClient
    from types_boto3_sns import SNSClient
    from types_boto3_sqs import SQSClient

CANARY_WAIT_SECONDS: Final = 90
_POLL_SECONDS: Final = 1.0
_HTTP_TIMEOUT_SECONDS: Final = 10


class Clients(Protocol):
    """The AWS services that verification asks."""

    @property
    def sqs(self) -> "SQSClient": ...
    @property
    def lambda_(self) -> "LambdaClient": ...
    @property
    def logs(self) -> "CloudWatchLogsClient": ...
    @property
    def secretsmanager(self) -> "SecretsManagerClient": ...
    @property
    def sns(self) -> "SNSClient": ...


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of one check; `detail` says what was seen, and the remedy where it is not right."""

    check: str
    subject: str
    ok: bool
    detail: str


Check = Callable[[], tuple[bool, str]]


def verify(
    stage: str, outputs: Mapping[str, Any], clients: Clients, *, secrets_used: frozenset[str], canary: bool
) -> Iterator[Finding]:
    """Every check of the stage, as it is made; a check that cannot be made is a finding, never an exception."""
    for spec in QUEUES:
        yield _made("queue", spec.name, lambda spec=spec: check_queue(clients, outputs, stage, spec))
        yield _made("mapping", spec.name, lambda spec=spec: check_mapping(clients, outputs, stage, spec))
        yield _made("function", spec.name, lambda spec=spec: check_function(clients, outputs, stage, spec))
        if LANGFUSE_SECRET_KEY in spec.secrets:
            yield _made("tracing", spec.name, lambda spec=spec: check_tracing(clients, outputs, stage, spec))
        if canary:
            yield _made("canary", spec.name, lambda spec=spec: check_canary(clients, outputs, stage, spec))
    for state in secret_states(clients.secretsmanager, stage):
        if state.name in secrets_used:
            remedy = f"run `./sophia secrets set {state.name} -s {stage}`"
            yield Finding("secret", state.name, state.has_value, "has a value" if state.has_value else remedy)
    if "alarmTopicArn" in outputs and stage != LOCAL_STAGE:
        yield _made("alarms", "topic", lambda: check_subscribers(clients.sns, outputs["alarmTopicArn"]))
    if "apiUrl" in outputs:
        yield _made("api", "readiness", lambda: check_api(outputs["apiUrl"]))


def _made(check: str, subject: str, run: Check) -> Finding:
    try:
        ok, detail = run()
    except (AppError, BotoCoreError, ClientError, OSError) as exc:
        return Finding(check, subject, ok=False, detail=f"could not be checked: {exc}")
    return Finding(check, subject, ok, detail)


def check_queue(clients: Clients, outputs: Mapping[str, Any], stage: str, spec: QueueSpec[Any]) -> tuple[bool, str]:
    """Visibility, receives and dead-letter queue are those of the registry."""
    url, dlq_url = url_of(outputs, spec.output, stage), url_of(outputs, spec.dlq_output, stage)
    attributes = clients.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["VisibilityTimeout", "RedrivePolicy"])[
        "Attributes"
    ]
    dlq_arn = clients.sqs.get_queue_attributes(QueueUrl=dlq_url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    redrive: dict[str, Any] = json.loads(attributes.get("RedrivePolicy", "{}"))
    expected = (spec.visibility_timeout_seconds, dlq_arn, spec.max_receive_count)
    seen = (
        int(attributes["VisibilityTimeout"]),
        redrive.get("deadLetterTargetArn"),
        int(redrive.get("maxReceiveCount", 0)),
    )
    if seen == expected:
        return True, f"visibility {seen[0]} s, {seen[2]} receives, then {spec.dlq_physical_name(stage)}"
    return False, f"is {seen}, the registry says {expected}: run `./sophia pulumi up -s {stage}`"


def check_mapping(clients: Clients, outputs: Mapping[str, Any], stage: str, spec: QueueSpec[Any]) -> tuple[bool, str]:
    """One event source mapping, enabled, with partial batch responses and the registry's batch and concurrency."""
    mappings = _mappings(clients, outputs, stage, spec)
    if len(mappings) != 1:
        return False, f"{len(mappings)} event source mappings; one is needed"
    (mapping,) = mappings
    faults = [
        fault
        for fault, wrong in (
            (f"is {mapping.get('State')}", mapping.get("State") != "Enabled"),
            (
                "does not report batch item failures",
                "ReportBatchItemFailures" not in mapping.get("FunctionResponseTypes", []),
            ),
            (f"takes {mapping.get('BatchSize')} a batch", mapping.get("BatchSize") != spec.batch_size),
        )
        if wrong
    ]
    if faults:
        return False, f"the event source mapping {', '.join(faults)}: run `./sophia pulumi up -s {stage}`"
    return True, f"enabled, batch {spec.batch_size}, partial responses"


def check_function(clients: Clients, outputs: Mapping[str, Any], stage: str, spec: QueueSpec[Any]) -> tuple[bool, str]:
    """The function starts, reads its settings and answers an empty batch; its timeout fits the queue's visibility."""
    mappings = _mappings(clients, outputs, stage, spec)
    name = mappings[0].get("FunctionArn", "") if mappings else ""
    if not name:
        return False, "no function consumes this queue"
    timeout_seconds = clients.lambda_.get_function_configuration(FunctionName=name).get("Timeout", 0)
    if timeout_seconds > spec.visibility_timeout_seconds:
        return False, f"may run {timeout_seconds} s, longer than a message stays hidden"
    answer = clients.lambda_.invoke(FunctionName=name, Payload=json.dumps({"Records": []}).encode())
    if answer.get("FunctionError"):
        error: Any = json.loads(answer["Payload"].read() or b"{}")
        return False, f"does not start: {str(error.get('errorMessage', 'no reason given'))[:300]}"
    return True, f"answers an empty batch, timeout {timeout_seconds} s"


def check_canary(
    clients: Clients,
    outputs: Mapping[str, Any],
    stage: str,
    spec: QueueSpec[Any],
    *,
    wait_seconds: float = CANARY_WAIT_SECONDS,
) -> tuple[bool, str]:
    """A body that no schema takes travels to the function, which drops it and says so in its log."""
    started = time.time()
    sent = clients.sqs.send_message(QueueUrl=url_of(outputs, spec.output, stage), MessageBody='{"canary":true}')
    mappings = _mappings(clients, outputs, stage, spec)
    function = mappings[0].get("FunctionArn", "").rsplit(":", 1)[-1] if mappings else ""
    deadline = time.monotonic() + wait_seconds
    while time.monotonic() < deadline:
        found = clients.logs.filter_log_events(
            logGroupName=f"/aws/lambda/{function}",
            startTime=int(started * 1000) - 60_000,
            filterPattern=f'"{sent["MessageId"]}"',
        )
        if found.get("events"):
            return True, f"dropped and logged after {time.time() - started:.1f} s"
        time.sleep(_POLL_SECONDS)
    return False, f"message {sent['MessageId']} was not logged within {wait_seconds:.0f} s: `./sophia logs`"


def check_subscribers(sns: "SNSClient", topic_arn: str) -> tuple[bool, str]:
    """Somebody hears the alarms."""
    subscriptions = sns.list_subscriptions_by_topic(TopicArn=topic_arn)["Subscriptions"]
    confirmed = [one for one in subscriptions if one.get("SubscriptionArn", "").startswith("arn:")]
    if confirmed:
        return True, f"{len(confirmed)} confirmed subscriptions"
    return False, "nobody hears the alarms: confirm the subscription in the mail that AWS sent"


def check_tracing(clients: Clients, outputs: Mapping[str, Any], stage: str, spec: QueueSpec[Any]) -> tuple[bool, str]:
    """A trace travels to Langfuse and back, with what the deployed function has; or the function traces nothing."""
    mappings = _mappings(clients, outputs, stage, spec)
    if not mappings:
        return False, "no function consumes this queue"
    configuration = clients.lambda_.get_function_configuration(FunctionName=mappings[0].get("FunctionArn", ""))
    settings = tracing_settings(configuration.get("Environment", {}).get("Variables", {}), clients.secretsmanager)
    return (True, "off: no Langfuse key is configured") if settings is None else check_trace(settings)


def check_api(url: str) -> tuple[bool, str]:
    """The API answers that it is ready."""
    try:
        with urllib.request.urlopen(f"{url.rstrip('/')}/readyz", timeout=_HTTP_TIMEOUT_SECONDS) as answer:  # noqa: S310
            return answer.status == 200, f"answers {answer.status}"
    except urllib.error.HTTPError as exc:
        return False, f"answers {exc.code}: `./sophia logs api`, then the database and the queue URLs"


def _mappings(
    clients: Clients, outputs: Mapping[str, Any], stage: str, spec: QueueSpec[Any]
) -> list[Mapping[str, Any]]:
    url = url_of(outputs, spec.output, stage)
    arn = clients.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    found = clients.lambda_.list_event_source_mappings(EventSourceArn=arn)["EventSourceMappings"]
    return [dict(mapping) for mapping in found]
