"""Each rule is broken once, and its sentence read."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pulumi
import pytest

from api_services.queues import INGEST, INTERVIEW_COMPLETED, QUEUES, QueueSpec
from infra import rules
from infra.rules import resource_types as kind
from infra.rules.graph import UNKNOWN, Graph, Node, Ref
from tests.infra.engine import Engine, run_program, stage_values

QUEUE, DLQ, FUNCTION, COMPONENT = "jobs-queue", "jobs-dlq", "jobs-function", "jobs-consumer"


def sentences(graph: Graph, rule: str) -> list[str]:
    """What one rule says of a graph."""
    return [violation.sentence for violation in rules.check(graph) if violation.rule == rule]


def changed(graph: Graph, name: str, **inputs: Any) -> Graph:
    """The graph with other inputs of one resource; None takes an input away."""
    assert any(node.name == name for node in graph.nodes), f"there is no {name}"

    def change(node: Node) -> Node:
        if node.name != name or node.type.startswith("sophia:"):
            return node
        merged = {**node.inputs, **inputs}
        return replace(node, inputs={key: value for key, value in merged.items() if value is not None})

    return Graph(stage=graph.stage, nodes=tuple(change(node) for node in graph.nodes))


def without(graph: Graph, name: str) -> Graph:
    """The graph without one resource."""
    assert any(node.name == name for node in graph.nodes), f"there is no {name}"
    return Graph(stage=graph.stage, nodes=tuple(node for node in graph.nodes if node.name != name))


def consumer(
    queue: Mapping[str, Any] | None = None,
    dlq: Mapping[str, Any] | None = None,
    function: Mapping[str, Any] | None = None,
    mapping: Mapping[str, Any] | None = None,
    receives: Any = 3,
    stage: str = "dev",
) -> Graph:
    """A queue, its dead-letter queue and its consumer, right but for what a test changes."""
    component = Ref("sophia:lambda:Function", COMPONENT)
    return Graph(
        stage=stage,
        nodes=(
            Node(type="sophia:lambda:Function", name=COMPONENT, inputs={"packageArchitecture": "arm64"}),
            Node(
                type=kind.QUEUE,
                name=QUEUE,
                inputs={
                    "name": "jobs",
                    "visibilityTimeoutSeconds": 60,
                    "messageRetentionSeconds": 345_600,
                    **(queue or {}),
                },
            ),
            Node(
                type=kind.QUEUE,
                name=DLQ,
                inputs={"name": "jobs-dlq", "messageRetentionSeconds": 1_209_600, **(dlq or {})},
            ),
            Node(
                type=kind.REDRIVE,
                name="jobs-redrive",
                inputs={
                    "queueUrl": Ref(kind.QUEUE, QUEUE, "url"),
                    "redrivePolicy": {
                        "deadLetterTargetArn": Ref(kind.QUEUE, DLQ, "arn"),
                        "maxReceiveCount": receives,
                    },
                },
            ),
            Node(
                type=kind.FUNCTION,
                name=FUNCTION,
                parent=component,
                inputs={"name": "jobs", "timeout": 10, "architectures": ["arm64"], **(function or {})},
            ),
            Node(
                type=kind.MAPPING,
                name="jobs-mapping",
                inputs={
                    "eventSourceArn": Ref(kind.QUEUE, QUEUE, "arn"),
                    "functionName": Ref(kind.FUNCTION, FUNCTION, "name"),
                    "functionResponseTypes": ["ReportBatchItemFailures"],
                    "batchSize": 10,
                    "scalingConfig": {"maximumConcurrency": 10},
                    **(mapping or {}),
                },
            ),
        ),
    )


def test_every_stage_keeps_every_rule(engine: Engine) -> None:
    assert rules.check(engine.graph) == []


def test_the_graph_sees_through_documents_before_anything_is_registered(dev: Engine) -> None:
    policies = {node.name: node for node in dev.graph.of(kind.REDRIVE)}
    document = policies["ingest-redrive"].document("redrivePolicy")
    assert document == {"deadLetterTargetArn": Ref(kind.QUEUE, "ingest-dlq", "arn"), "maxReceiveCount": 3}


def test_a_visibility_below_timeout_and_window_is_refused_with_both_numbers() -> None:
    graph = consumer(
        {"visibilityTimeoutSeconds": 64}, function={"timeout": 60}, mapping={"maximumBatchingWindowInSeconds": 5}
    )
    assert sentences(graph, "visibility-covers-timeout") == [
        "jobs-queue: the visibility timeout of 64 s is below the function's timeout of 60 s plus the batching window "
        "of 5 s; make it at least 65 s [visibility-covers-timeout]"
    ]
    assert not sentences(changed(graph, QUEUE, visibilityTimeoutSeconds=65), "visibility-covers-timeout")


def test_a_visibility_above_the_limit_of_sqs_is_refused() -> None:
    (sentence,) = sentences(consumer({"visibilityTimeoutSeconds": 43_201}), "visibility-covers-timeout")
    assert "43201 s is above SQS's limit of 43200 s" in sentence


@pytest.mark.parametrize(
    ("reserved", "maximum", "receives", "words"),
    [
        (10, None, 5, "queue jobs-queue has no maximum concurrency (reserved concurrency is 10)"),
        (10, 50, 5, "queue jobs-queue has a maximum concurrency of 50, above the reserved concurrency of 10"),
        (None, 1, 5, "queue jobs-queue has a maximum concurrency of 1; it must be from 2 to 1000"),
        (None, 1001, 5, "queue jobs-queue has a maximum concurrency of 1001; it must be from 2 to 1000"),
        (10, 10, 1, "jobs-queue: maxReceiveCount 1 is below 3"),
        (10, 10, 5, None),
    ],
)
def test_throttling_may_not_use_up_receives(
    reserved: int | None, maximum: int | None, receives: int, words: str | None
) -> None:
    scaling = {} if maximum is None else {"maximumConcurrency": maximum}
    function = {} if reserved is None else {"reservedConcurrentExecutions": reserved}
    graph = consumer(function=function, mapping={"scalingConfig": scaling}, receives=receives)
    found = sentences(graph, "concurrency-is-bounded") + sentences(graph, "receives-have-a-floor")
    assert len(found) == (0 if words is None else 1)
    assert words is None or words in found[0]


def test_receives_are_a_whole_number_in_the_document() -> None:
    (sentence,) = sentences(consumer(receives="3"), "receives-have-a-floor")
    assert "must be a whole number, got '3'" in sentence


@pytest.mark.parametrize(
    ("fifo", "size", "window", "words"),
    [
        (False, 10, 0, None),
        (False, 11, 0, "batch size 11 with a batching window of 0 s: above 10 a window of at least 1 s is needed"),
        (False, 11, 1, None),
        (False, 10_001, 5, "batch size 10001 with a batching window of 5 s: the size must be from 1 to 10000"),
        (False, 5, 301, "batch size 5 with a batching window of 301 s: the window must be from 0 to 300 s"),
        (False, 0, 0, "the size must be from 1 to 10000"),
        (True, 10, 0, None),
        (True, 11, 0, "batch size 11 with a batching window of 0 s: a FIFO queue takes at most 10 and no window"),
        (True, 10, 1, "batch size 10 with a batching window of 1 s: a FIFO queue takes at most 10 and no window"),
    ],
)
def test_batch_and_window_are_refused_before_lambda_does(fifo: bool, size: int, window: int, words: str | None) -> None:
    graph = consumer(
        {"fifoQueue": fifo, "visibilityTimeoutSeconds": 600},
        mapping={"batchSize": size, "maximumBatchingWindowInSeconds": window},
    )
    found = sentences(graph, "batch-and-window")
    assert len(found) == (0 if words is None else 1)
    assert words is None or words in found[0]


def test_four_fifo_names_of_two_long_stages_fit_differ_and_end_in_fifo() -> None:
    spec = replace(INTERVIEW_COMPLETED, name="report-generation", fifo=True)
    stem = "feature-candidate-scorecard-regeneration-with-retries-and-budget-caps-"
    names = [
        name
        for stage in (stem + "a", stem + "b")
        for name in (spec.physical_name(stage), spec.dlq_physical_name(stage))
    ]
    assert len(set(names)) == 4
    assert all(len(name) <= 80 and name.endswith(".fifo") for name in names)
    pair = consumer({"name": names[0], "fifoQueue": True}, {"name": names[1], "fifoQueue": True})
    assert not sentences(pair, "queue-names-and-fifo-pairs")


@pytest.mark.parametrize(
    ("queue", "dlq", "words"),
    [
        ({"name": "jobs.fifo", "fifoQueue": True}, {}, "jobs-dlq: must be FIFO if and only if jobs-queue is"),
        (
            {"name": "jobs", "fifoQueue": True},
            {"name": "d.fifo", "fifoQueue": True},
            "the name 'jobs' must end with .fifo",
        ),
        ({"name": "jobs.fifo"}, {}, "must not end with .fifo, for it is a standard queue"),
        ({"name": "j" * 81}, {}, "has 81 characters; SQS takes 80"),
        ({"contentBasedDeduplication": True}, {}, "has content-based deduplication, which only a FIFO queue has"),
    ],
)
def test_fifo_pairs_and_names(queue: dict[str, Any], dlq: dict[str, Any], words: str) -> None:
    (sentence,) = sentences(consumer(queue, dlq), "queue-names-and-fifo-pairs")
    assert words in sentence


def test_a_dead_letter_queue_that_keeps_no_longer_than_its_source_is_refused() -> None:
    (sentence,) = sentences(consumer(dlq={"messageRetentionSeconds": 345_600}), "dlq-retention-above-source")
    assert (
        "jobs-dlq: keeps messages for 345600 s, not longer than jobs-queue, which keeps them for 345600 s" in sentence
    )


def test_a_queue_without_dead_letter_queue_is_refused(dev: Engine) -> None:
    found = sentences(without(dev.graph, "ingest-redrive"), "queue-has-dlq")
    assert any("ingest-queue: has no dead-letter queue" in sentence for sentence in found)
    (sentence,) = sentences(without(dev.graph, "ingest-redrive-allow"), "queue-has-dlq")
    assert "ingest-dlq: its redrive-allow policy must name ingest-queue and nothing else" in sentence


def test_a_dead_letter_queue_without_alarm_is_refused(dev: Engine) -> None:
    for name in ("ingest-dlq", "reconcile-index-dlq"):
        (sentence,) = sentences(without(dev.graph, f"{name}-alarm"), "alarms-reach-someone")
        assert f"{name}: has no alarm on a depth above 0" in sentence
    late = changed(dev.graph, "ingest-dlq-alarm", threshold=5)
    assert sentences(late, "alarms-reach-someone")


def test_an_alarm_that_reaches_nobody_is_refused_outside_the_local_stage(
    dev: Engine, stages: dict[str, Engine]
) -> None:
    found = sentences(without(dev.graph, "alarms-oncall-at-example.com"), "alarms-reach-someone")
    assert found
    assert all(
        "tells the topic alarms-topic, which nobody subscribes; set sophia:alarmEmails" in text for text in found
    )
    assert not sentences(stages["local"].graph, "alarms-reach-someone")
    (silent,) = sentences(changed(dev.graph, "ingest-dlq-alarm", okActions=None), "alarms-reach-someone")
    assert "has no okActions" in silent


@pytest.mark.parametrize("types", [None, [], ["ReportBatchItemFailures", "Other"], ["reportBatchItemFailures"]])
def test_a_mapping_without_partial_responses_is_refused(types: list[str] | None) -> None:
    graph = changed(consumer(), "jobs-mapping", functionResponseTypes=types)
    (sentence,) = sentences(graph, "partial-responses")
    assert "functionResponseTypes must be exactly ['ReportBatchItemFailures']" in sentence


def test_a_function_of_another_architecture_than_its_package_is_refused(dev: Engine) -> None:
    for node in dev.graph.of(kind.FUNCTION):
        (sentence,) = sentences(changed(dev.graph, node.name, architectures=["x86_64"]), "function-matches-package")
        assert f"{node.name}: runs on ['x86_64'], but its package was built for arm64" in sentence


def test_a_function_of_another_python_than_its_package_is_refused(dev: Engine) -> None:
    graph = changed(dev.graph, "ingest-consumer-function", runtime="python3.12")
    (sentence,) = sentences(graph, "function-matches-package")
    assert "runs python3.12, but its package was built for Python 3.13" in sentence


def test_a_function_beyond_lambdas_limits_or_without_logs_is_refused(dev: Engine) -> None:
    (sentence,) = sentences(changed(dev.graph, "ingest-consumer-function", timeout=901), "function-matches-package")
    assert "has a timeout of 901 s, above 900 s" in sentence
    (sentence,) = sentences(without(dev.graph, "ingest-consumer-logs"), "function-matches-package")
    assert "has no log group /aws/lambda/sophia-dev-ingest with a retention" in sentence


def test_a_queue_under_the_managed_key_that_a_schedule_writes_to_is_refused(dev: Engine) -> None:
    graph = changed(dev.graph, "reconcile-index-dlq", kmsMasterKeyId="alias/aws/sqs")
    (sentence,) = sentences(graph, "keys-admit-writers")
    assert (
        "reconcile-index-dlq: is encrypted with alias/aws/sqs, whose policy cannot admit scheduler.amazonaws"
        in sentence
    )


def keyed(statements: list[dict[str, Any]]) -> Graph:
    """A queue under a customer key, subscribed to a topic."""
    key = Ref(kind.KEY, "key", "arn")
    return Graph(
        stage="dev",
        nodes=(
            Node(type=kind.KEY, name="key", inputs={"policy": {"Statement": statements}}),
            Node(type=kind.QUEUE, name="nightly-credits", inputs={"kmsMasterKeyId": key}),
            Node(
                type=kind.SUBSCRIPTION,
                name="nightly",
                inputs={"endpoint": Ref(kind.QUEUE, "nightly-credits", "arn")},
            ),
        ),
    )


def test_a_customer_key_must_admit_the_topic_that_writes_to_the_queue() -> None:
    admits = {
        "Effect": "Allow",
        "Principal": {"Service": "sns.amazonaws.com"},
        "Action": ["kms:Decrypt", "kms:GenerateDataKey*"],
    }
    assert not sentences(keyed([admits]), "keys-admit-writers")
    refused = sentences(keyed([{**admits, "Action": ["kms:Decrypt"]}]), "keys-admit-writers")
    assert [sentence.split(":")[0] for sentence in refused] == ["nightly-credits"]
    assert "is encrypted with a customer key whose policy does not admit sns.amazonaws.com" in refused[0]


def test_a_topic_under_a_key_that_cloudwatch_cannot_use_is_refused(dev: Engine) -> None:
    (managed,) = sentences(changed(dev.graph, "alarms-topic", kmsMasterKeyId="alias/aws/sns"), "keys-admit-writers")
    assert "whose policy cannot admit cloudwatch.amazonaws.com" in managed
    (closed,) = sentences(changed(dev.graph, "stage-key", policy={"Statement": []}), "keys-admit-writers")
    assert "alarms-topic: is encrypted with a customer key whose policy does not admit cloudwatch" in closed


def test_a_langfuse_key_without_base_url_is_refused() -> None:
    environment = {"variables": {"LANGFUSE_PUBLIC_KEY": "pk"}}
    (sentence,) = sentences(consumer(function={"environment": environment}), "langfuse-needs-base-url")
    assert "jobs-function: has a Langfuse key but no LANGFUSE_BASE_URL" in sentence
    environment["variables"]["LANGFUSE_HOST"] = "https://langfuse.example.com"
    assert not sentences(consumer(function={"environment": environment}), "langfuse-needs-base-url")


def test_a_secret_in_an_environment_is_refused_of_functions_and_containers(dev: Engine) -> None:
    environment = {"variables": {"MONGO_URI": "mongodb://example"}}
    (sentence,) = sentences(consumer(function={"environment": environment}), "no-secret-in-environment")
    assert "carries the secret MONGO_URI in its environment; pass MONGO_URI_SECRET_ARN" in sentence
    containers = [{"environment": [{"name": "API_KEYS", "value": "{}"}]}]
    (sentence,) = sentences(changed(dev.graph, "api-task", containerDefinitions=containers), "no-secret-in-environment")
    assert "api-task: carries the secret API_KEYS" in sentence


def test_a_queue_that_may_hold_messages_is_protected_unless_named(dev: Engine) -> None:
    nodes = tuple(replace(node, protect=False) if node.name == "ingest-queue" else node for node in dev.graph.nodes)
    (sentence,) = sentences(Graph(stage="dev", nodes=nodes), "queues-are-protected")
    assert "ingest-queue: may hold messages but is not protected" in sentence
    assert "pulumi config set --path 'sophia:loseMessagesOf[0]' ingest" in sentence
    assert not sentences(Graph(stage="local", nodes=nodes), "queues-are-protected")


def test_a_queue_that_is_open_or_in_clear_is_refused(dev: Engine) -> None:
    (sentence,) = sentences(without(dev.graph, "ingest-queue-policy"), "queues-are-closed")
    assert "ingest-queue: has no queue policy that refuses plain HTTP and other accounts" in sentence
    (sentence,) = sentences(changed(dev.graph, "ingest-dlq", sqsManagedSseEnabled=None), "queues-are-closed")
    assert "ingest-dlq: is not encrypted" in sentence
    weak = changed(dev.graph, "ingest-queue-policy", policy={"Statement": []})
    (sentence,) = sentences(weak, "queues-are-closed")
    assert "does not refuse both plain HTTP and other accounts" in sentence


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ({"Action": ["sqs:*"], "Resource": ["arn"]}, "allows sqs:*; name the actions"),
        ({"Action": "*", "Resource": "arn"}, "allows *; name the actions"),
        (
            {"Action": ["sqs:SendMessage"], "Resource": "*"},
            "allows sqs:SendMessage on every resource; name the resources",
        ),
    ],
)
def test_a_wide_policy_is_refused(dev: Engine, statement: dict[str, Any], words: str) -> None:
    graph = changed(dev.graph, "ingest-consumer-policy", policy={"Statement": [statement]})
    (sentence,) = sentences(graph, "policies-are-narrow")
    assert words in sentence


@pytest.mark.parametrize(
    "text", ["<pulumi.output.Output object at 0x7f>", "Calling __str__ on an Output[T] is not supported.", "x Output[y"]
)
def test_an_output_formatted_as_text_is_refused_at_any_depth(dev: Engine, text: str) -> None:
    environment = {"variables": {"QUEUE_URL": text}}
    (sentence,) = sentences(
        changed(dev.graph, "ingest-consumer-function", environment=environment), "no-output-as-text"
    )
    assert "environment.variables.QUEUE_URL holds an Output formatted as text" in sentence


def test_what_is_not_known_yet_is_not_judged() -> None:
    graph = changed(consumer(), "jobs-redrive", redrivePolicy=UNKNOWN)
    assert not sentences(graph, "receives-have-a-floor")
    assert not sentences(graph, "dlq-retention-above-source")


GUARDED: list[tuple[str, Callable[[str], bool]]] = [
    (kind.REDRIVE, lambda _: True),
    (kind.REDRIVE_ALLOW, lambda _: True),
    (kind.QUEUE_POLICY, lambda _: True),
    (kind.LOG_GROUP, lambda name: not name.startswith("api")),
    (kind.ALARM, lambda name: name.endswith("-dlq-alarm")),
    (kind.SUBSCRIPTION, lambda _: True),
]


@pytest.mark.parametrize(("guarded", "which"), GUARDED, ids=[item[0] for item in GUARDED])
def test_a_guarded_resource_cannot_go_unnoticed(dev: Engine, guarded: str, which: Callable[[str], bool]) -> None:
    names = [node.name for node in dev.graph.of(guarded) if which(node.name)]
    assert names
    for name in names:
        assert rules.check(without(dev.graph, name)), f"{name} can be removed without a word"


def test_the_program_ends_with_every_violation_and_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = replace(INGEST, stated_visibility_timeout_seconds=800)
    broken: tuple[QueueSpec[Any], ...] = tuple(slow if spec is INGEST else spec for spec in QUEUES)
    monkeypatch.setattr("infra.queues.QUEUES", broken)
    with pytest.raises(pulumi.RunError) as refused:
        run_program("dev", stage_values("dev"))
    assert str(refused.value).splitlines() == [
        "stage dev breaks 1 rule:",
        "  ingest-queue: the visibility timeout of 800 s is below the function's timeout of 900 s plus the batching "
        "window of 0 s; make it at least 900 s [visibility-covers-timeout]",
    ]


def test_each_rule_is_named_once_and_described() -> None:
    assert len(set(rules.RULES.values())) == len(rules.RULES)
    assert all(rule.__doc__ for rule in rules.RULES.values())
