"""The body of the stage's dashboard: alarms on top, then what died, what waits, how functions do, and the API."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pulumi

from api_services import metrics
from infra.policy_documents import JsonDocument

WIDTH: Final = 24
ROW_HEIGHT: Final = 6
PERIOD_SECONDS: Final = 300

Name = pulumi.Input[str]
Series = list[Any]


def dashboard_body(
    *,
    stage: str,
    region: str,
    alarm_arns: Sequence[Name],
    queues: Mapping[str, tuple[Name, Name]],
    functions: Mapping[str, Name],
    load_balancer: Name | None,
    service: tuple[Name, Name] | None,
) -> JsonDocument:
    """`queues` are queue and dead-letter queue by name, `functions` physical names by name."""
    depth = "ApproximateNumberOfMessagesVisible"
    own = (metrics.RECORDS_DROPPED, metrics.RECORDS_DEAD_LETTERED, metrics.RECORDS_FAILED, metrics.RECORDS_DEFERRED)
    widgets: list[dict[str, Any]] = [
        _box("alarm", 0, 0, WIDTH, 3, {"title": f"Sophia {stage}: alarms", "alarms": list(alarm_arns)}),
        _graph(
            (0, 3, 8),
            region,
            "Dead messages (should be 0)",
            [["AWS/SQS", depth, "QueueName", dlq, _label(name)] for name, (_, dlq) in queues.items()],
            view="singleValue",
            statistic="Maximum",
        ),
        _graph(
            (8, 3, 8),
            region,
            "Messages waiting",
            [["AWS/SQS", depth, "QueueName", queue, _label(name)] for name, (queue, _) in queues.items()],
            statistic="Maximum",
        ),
        _graph(
            (16, 3, 8),
            region,
            "Age of the oldest message (s)",
            [
                ["AWS/SQS", "ApproximateAgeOfOldestMessage", "QueueName", queue, _label(name)]
                for name, (queue, _) in queues.items()
            ],
            statistic="Maximum",
        ),
        _graph(
            (0, 9, 8), region, "Errors and throttles", [*_lambda(functions, "Errors"), *_lambda(functions, "Throttles")]
        ),
        _graph((8, 9, 8), region, "Duration p95 (ms)", _lambda(functions, "Duration"), statistic="p95"),
        _graph((16, 9, 8), region, "Invocations", _lambda(functions, "Invocations")),
        _graph(
            (0, 15, 12),
            region,
            "Records by outcome",
            [
                [metrics.NAMESPACE, metric, "stage", stage, "queue", name, _label(f"{name} {metric[7:].lower()}")]
                for metric in own
                for name in queues
            ],
        ),
    ]
    if load_balancer is not None and service is not None:
        cluster, name = service
        widgets += [
            _graph(
                (12, 15, 6),
                region,
                "API: requests and faults",
                [
                    ["AWS/ApplicationELB", metric, "LoadBalancer", load_balancer, _label(label)]
                    for metric, label in (("RequestCount", "requests"), ("HTTPCode_Target_5XX_Count", "5xx"))
                ],
            ),
            _graph(
                (18, 15, 6),
                region,
                "API: load of tasks (%)",
                [
                    ["AWS/ECS", metric, "ClusterName", cluster, "ServiceName", name, _label(label)]
                    for metric, label in (("CPUUtilization", "CPU"), ("MemoryUtilization", "memory"))
                ],
                statistic="Average",
            ),
        ]
    return JsonDocument({"widgets": widgets})


def _graph(
    place: tuple[int, int, int],
    region: str,
    title: str,
    series: Series,
    *,
    view: str = "timeSeries",
    statistic: str = "Sum",
) -> dict[str, Any]:
    x, y, width = place
    properties = {
        "title": title,
        "region": region,
        "metrics": series,
        "view": view,
        "stat": statistic,
        "period": PERIOD_SECONDS,
    }
    return _box("metric", x, y, width, ROW_HEIGHT, properties)


def _box(kind: str, x: int, y: int, width: int, height: int, properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": kind, "x": x, "y": y, "width": width, "height": height, "properties": properties}


def _label(text: str) -> dict[str, str]:
    return {"label": text}


def _lambda(functions: Mapping[str, Name], metric: str) -> Series:
    suffix = "" if metric not in ("Errors", "Throttles") else f" {metric.lower()}"
    return [["AWS/Lambda", metric, "FunctionName", name, _label(f"{key}{suffix}")] for key, name in functions.items()]
