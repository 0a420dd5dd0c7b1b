"""Rules about functions, alarms, keys, policies and secrets. Each yields one sentence per fault."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from api_services.secrets import SECRETS
from api_services.stages import LOCAL_STAGE
from infra.rules import resource_types as kind
from infra.rules.graph import UNKNOWN, Graph, Node
from infra.rules.relations import Faults, dead_letter_queues

FUNCTION_NAME_MAX: Final = 64
FUNCTION_TIMEOUT_MAX: Final = 900
UNSCOPED_ACTIONS: Final = frozenset({"ecr:GetAuthorizationToken", "xray:PutTelemetryRecords", "xray:PutTraceSegments"})
"""Actions for which IAM knows no resource (service authorization reference)."""
OUTPUT_MARKERS: Final = (
    "<pulumi.output.Output",
    "Calling __str__",
    "Calling [toString]",
    "Calling [toJSON]",
    "Output[",
)
SCHEDULER: Final = "scheduler.amazonaws.com"
"""Sends as a role of the account, which a customer key admits through IAM."""
SNS: Final = "sns.amazonaws.com"


def functions(graph: Graph) -> Faults:
    """A function runs the binaries it was packaged with, within Lambda's limits, and its logs have a retention."""
    groups = {group.text("name"): group for group in graph.of(kind.LOG_GROUP)}
    for function in graph.of(kind.FUNCTION):
        package = graph.parent(function)
        built_for = package.inputs.get("packageArchitecture") if package else None
        architectures = function.items("architectures")
        if architectures != [built_for]:
            yield function, f"runs on {architectures}, but its package was built for {built_for}"
        built_with = package.inputs.get("packagePythonVersion") if package else None
        if function.text("runtime") != f"python{built_with}":
            yield function, f"runs {function.text('runtime')}, but its package was built for Python {built_with}"
        if function.number("timeout", 3) > FUNCTION_TIMEOUT_MAX:
            yield (
                function,
                f"has a timeout of {function.number('timeout')} s, above {FUNCTION_TIMEOUT_MAX} s",
            )
        name = function.text("name")
        if len(name) > FUNCTION_NAME_MAX:
            yield function, f"the name '{name}' has {len(name)} characters; Lambda takes {FUNCTION_NAME_MAX}"
        group = groups.get(f"/aws/lambda/{name}")
        if name and (group is None or group.number("retentionInDays") < 1):
            yield function, f"has no log group /aws/lambda/{name} with a retention; Lambda would keep its logs for ever"


def alarms(graph: Graph) -> Faults:
    """Every dead-letter queue raises an alarm at its first message, and every alarm reaches someone."""
    watched = {
        queue.name
        for alarm in graph.of(kind.ALARM)
        if alarm.text("metricName") == "ApproximateNumberOfMessagesVisible"
        and alarm.text("comparisonOperator") == "GreaterThanThreshold"
        and alarm.number("threshold", 1) == 0
        and (queue := graph.target(alarm.nested("dimensions").get("QueueName"), kind.QUEUE))
    }
    for dlq in dead_letter_queues(graph):
        if dlq.name not in watched:
            yield dlq, "has no alarm on a depth above 0"
    subscribed = {
        topic.name
        for subscription in graph.of(kind.SUBSCRIPTION)
        if (topic := graph.target(subscription.inputs.get("topic"), kind.TOPIC))
    }
    for alarm in graph.of(kind.ALARM):
        for key in ("alarmActions", "okActions"):
            topics = [graph.target(action, kind.TOPIC) for action in alarm.items(key)]
            if not topics:
                yield alarm, f"has no {key}; name the alarm topic"
            for topic in topics:
                if topic and topic.name not in subscribed and graph.stage != LOCAL_STAGE:
                    yield alarm, f"tells the topic {topic.name}, which nobody subscribes; set sophia:alarmEmails"


def keys(graph: Graph) -> Faults:
    """A service cannot use an AWS-managed key, and a customer key only where the key's policy admits the service."""
    for node, key, service in _encrypted_and_written(graph):
        managed = isinstance(key, str) and "alias/aws/" in key
        if managed:
            yield (
                node,
                f"is encrypted with {key}, whose policy cannot admit {service}: what it sends would be lost "
                "unseen; use a customer key that admits it, or SSE-SQS for a queue",
            )
        elif service != SCHEDULER and not _admits(graph, key, service):
            yield node, f"is encrypted with a customer key whose policy does not admit {service}"


def langfuse(graph: Graph) -> Faults:
    """Langfuse keys without a base URL send traces to the SDK's default region without a word."""
    for node, environment in _environments(graph):
        has_key = any(key.startswith(("LANGFUSE_PUBLIC_KEY", "LANGFUSE_SECRET_KEY")) for key in environment)
        if has_key and not ({"LANGFUSE_BASE_URL", "LANGFUSE_HOST"} & set(environment)):
            yield node, "has a Langfuse key but no LANGFUSE_BASE_URL; set sophia:langfuseBaseUrl"


def no_secrets(graph: Graph) -> Faults:
    """A secret reaches a process by its ARN, never by its value."""
    names = {spec.setting.upper() for spec in SECRETS}
    for node, environment in _environments(graph):
        for key in sorted(names & set(environment)):
            yield node, f"carries the secret {key} in its environment; pass {key}_SECRET_ARN"


def queue_loss(graph: Graph) -> Faults:
    """A queue that may hold messages is protected, unless the command names it."""
    if graph.stage == LOCAL_STAGE:
        return
    for queue in graph.of(kind.QUEUE):
        component = graph.parent(queue)
        named = component is not None and component.inputs.get("messagesMayBeLost") is True
        if not queue.protect and not named:
            owner = component.name if component else queue.name
            yield (
                queue,
                "may hold messages but is not protected; to replace or delete it, name it: "
                f"pulumi config set --path 'sophia:loseMessagesOf[0]' {owner}",
            )


def closed_queues(graph: Graph) -> Faults:
    """Every queue is encrypted and refuses plain HTTP and other accounts."""
    policies: dict[str, Node] = {}
    for policy in graph.of(kind.QUEUE_POLICY):
        queue = graph.target(policy.inputs.get("queueUrl"), kind.QUEUE)
        if queue:
            policies[queue.name] = policy
    for queue in graph.of(kind.QUEUE):
        if queue.inputs.get("sqsManagedSseEnabled") is not True and not queue.inputs.get("kmsMasterKeyId"):
            yield queue, "is not encrypted; set sqsManagedSseEnabled"
        policy = policies.get(queue.name)
        document = policy.document("policy") if policy else None
        if policy is None:
            yield queue, "has no queue policy that refuses plain HTTP and other accounts"
        elif document is not None:
            denied = {
                key
                for statement in document.get("Statement", [])
                if statement.get("Effect") == "Deny"
                for test in statement.get("Condition", {}).values()
                for key in test
            }
            if not {"aws:SecureTransport", "aws:PrincipalAccount"} <= denied:
                yield queue, "has a queue policy that does not refuse both plain HTTP and other accounts"


def narrow_policies(graph: Graph) -> Faults:
    """No action and no resource is a wildcard where IAM knows a narrower one."""
    for policy in graph.of(kind.ROLE_POLICY):
        for statement in (policy.document("policy") or {}).get("Statement", []):
            actions = _as_list(statement.get("Action"))
            for action in actions:
                if isinstance(action, str) and "*" in action:
                    yield policy, f"allows {action}; name the actions"
            if "*" in _as_list(statement.get("Resource")) and not set(actions) <= UNSCOPED_ACTIONS:
                yield policy, f"allows {', '.join(map(str, actions))} on every resource; name the resources"


def no_output_as_text(graph: Graph) -> Faults:
    """An Output formatted as a string leaves its repr in the text."""
    for node in graph.nodes:
        for path, text in _texts(node.inputs):
            if any(marker in text for marker in OUTPUT_MARKERS):
                yield node, f"{path} holds an Output formatted as text; build it with Output.concat or a JsonDocument"


def _environments(graph: Graph) -> Iterator[tuple[Node, Mapping[str, Any]]]:
    for function in graph.of(kind.FUNCTION):
        yield function, cast("Mapping[str, Any]", function.nested("environment").get("variables", {}))
    for task in graph.of(kind.TASK):
        containers = task.parsed("containerDefinitions")
        for container in cast("list[Any]", containers) if isinstance(containers, list) else []:
            yield task, {pair["name"]: pair["value"] for pair in container.get("environment", [])}


def _encrypted_and_written(graph: Graph) -> Iterator[tuple[Node, Any, str]]:
    writers: list[tuple[Any, str]] = [
        (subscription.inputs.get("endpoint"), SNS) for subscription in graph.of(kind.SUBSCRIPTION)
    ]
    for schedule in graph.of(kind.SCHEDULE):
        target = schedule.nested("target")
        writers += [(target.get("arn"), SCHEDULER), (target.get("deadLetterConfig", {}).get("arn"), SCHEDULER)]
    for arn, service in writers:
        queue = graph.target(arn, kind.QUEUE)
        if queue and queue.inputs.get("kmsMasterKeyId"):
            yield queue, queue.inputs["kmsMasterKeyId"], service
    for topic in graph.of(kind.TOPIC):
        if topic.inputs.get("kmsMasterKeyId"):
            yield topic, topic.inputs["kmsMasterKeyId"], "cloudwatch.amazonaws.com"


def _admits(graph: Graph, key: Any, service: str) -> bool:
    node = graph.target(key, kind.KEY)
    if node is None and key is not UNKNOWN:
        return True  # a key of another stack: its policy is not ours to see
    documents = [node.document("policy")] if node else []
    for document in documents:
        if document is None:
            return True
        for statement in document.get("Statement", []):
            principal = statement.get("Principal", {})
            services = _as_list(principal.get("Service")) if isinstance(principal, dict) else []
            actions = {str(action).rstrip("*") for action in _as_list(statement.get("Action"))}
            if statement.get("Effect") == "Allow" and service in services:
                return {"kms:Decrypt", "kms:GenerateDataKey"} <= actions or "kms:" in actions
    return False


def _as_list(value: Any) -> list[Any]:
    if value is None:
        return []
    return cast("list[Any]", value) if isinstance(value, list) else [value]


def _texts(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping):
        for key, item in cast("Mapping[str, Any]", value).items():
            yield from _texts(item, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for index, item in enumerate(cast("list[Any]", value)):
            yield from _texts(item, f"{path}[{index}]")
