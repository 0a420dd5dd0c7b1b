"""The alarms beside dead messages, and the one dashboard on which an operator sees the stage at a glance."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pulumi
import pulumi_aws as aws

from api_services import metrics
from infra.components.alarm import alarm
from infra.components.http_service import HttpService
from infra.components.lambda_function import LambdaFunction
from infra.components.load_balancer import LoadBalancer
from infra.components.queue_pair import QueuePair
from infra.dashboard import dashboard_body

FIVE_MINUTES: Final = 300
OLDEST_MESSAGE_SECONDS: Final = 900
"""A younger backlog does not alarm: the reconcilers wait as long."""
API_FAULTS_PER_FIVE_MINUTES: Final = 5


@dataclass(frozen=True, kw_only=True)
class MonitoringArgs:
    stage: str
    prefix: str
    """Beginning of every alarm's name: `sophia-dev`."""
    region: str
    topic_arn: pulumi.Input[str]
    pairs: Sequence[QueuePair]
    functions: Mapping[str, LambdaFunction]
    schedule_group: pulumi.Input[str]
    dead_letter_alarms: Sequence[aws.cloudwatch.MetricAlarm]
    load_balancer: LoadBalancer | None
    service: HttpService | None
    dashboard: bool


class Monitoring(pulumi.ComponentResource):
    """Alarms on age, errors, throttles, dropped messages, the scheduler and the API; `alarms` are all of the stage."""

    def __init__(self, name: str, args: MonitoringArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("sophia:cloudwatch:Monitoring", name, None, opts)
        self._name, self._args = name, args
        self._child = pulumi.ResourceOptions(parent=self)
        self.alarm_names: list[str] = []
        """Of the alarms made here."""
        self.alarms = [*args.dead_letter_alarms, *self._queues(), *self._functions(), *self._scheduler(), *self._api()]
        if args.dashboard:
            aws.cloudwatch.Dashboard(
                f"{name}-dashboard",
                dashboard_name=args.prefix,
                dashboard_body=dashboard_body(
                    stage=args.stage,
                    region=args.region,
                    alarm_arns=[item.arn for item in self.alarms],
                    queues={pair.spec.name: (pair.queue.name, pair.dlq.name) for pair in args.pairs},
                    functions={key: function.function.name for key, function in args.functions.items()},
                    load_balancer=args.load_balancer.balancer.arn_suffix if args.load_balancer else None,
                    service=(args.service.cluster.name, args.service.service.name) if args.service else None,
                ),
                opts=self._child,
            )
        self.register_outputs({})

    def _queues(self) -> list[aws.cloudwatch.MetricAlarm]:
        made: list[aws.cloudwatch.MetricAlarm] = []
        for pair in self._args.pairs:
            spec = pair.spec
            # A message that failed once is as old as its visibility timeout; one such round does not alarm either.
            limit = max(OLDEST_MESSAGE_SECONDS, 2 * spec.visibility_timeout_seconds)
            made.append(
                self._alarm(
                    f"{spec.name}-age",
                    f"The oldest message of {spec.name} waits for over {limit} s: the consumer is slow or stopped.",
                    "AWS/SQS",
                    "ApproximateAgeOfOldestMessage",
                    {"QueueName": pair.queue.name},
                    statistic="Maximum",
                    threshold=limit,
                )
            )
            made.append(
                self._alarm(
                    f"{spec.name}-dropped",
                    f"Messages of {spec.name} were invalid and dropped; the consumer's log has their ids.",
                    metrics.NAMESPACE,
                    metrics.RECORDS_DROPPED,
                    {"stage": self._args.stage, "queue": spec.name},
                )
            )
        return made

    def _functions(self) -> list[aws.cloudwatch.MetricAlarm]:
        return [
            self._alarm(
                f"{key}-{metric.lower()}",
                f"The function of {key} {what}",
                "AWS/Lambda",
                metric,
                {"FunctionName": function.function.name},
            )
            for key, function in self._args.functions.items()
            for metric, what in (
                ("Errors", "raised or ran out of time: a dependency is away, or its settings are wrong."),
                ("Throttles", "was throttled: the account's or the function's concurrency is used up."),
            )
        ]

    def _scheduler(self) -> list[aws.cloudwatch.MetricAlarm]:
        return [
            self._alarm(
                f"scheduler-{key}",
                what,
                "AWS/Scheduler",
                metric,
                {"ScheduleGroup": self._args.schedule_group},
            )
            for key, metric, what in (
                ("errors", "TargetErrorCount", "The scheduler could not call a function; it tries again."),
                ("dropped", "InvocationDroppedCount", "The scheduler gave up calling a function: see the job's DLQ."),
            )
        ]

    def _api(self) -> list[aws.cloudwatch.MetricAlarm]:
        balancer = self._args.load_balancer
        if balancer is None:
            return []
        of_balancer = {"LoadBalancer": balancer.balancer.arn_suffix}
        of_targets = {**of_balancer, "TargetGroup": balancer.target_group.arn_suffix}
        return [
            self._alarm(
                "api-faults",
                "The API answers with 5xx: its log has the request ids.",
                "AWS/ApplicationELB",
                "HTTPCode_Target_5XX_Count",
                of_balancer,
                threshold=API_FAULTS_PER_FIVE_MINUTES,
            ),
            self._alarm(
                "api-unhealthy",
                "A task of the API does not answer its health check.",
                "AWS/ApplicationELB",
                "UnHealthyHostCount",
                of_targets,
                statistic="Maximum",
            ),
        ]

    def _alarm(
        self,
        key: str,
        description: str,
        namespace: str,
        metric: str,
        dimensions: Mapping[str, pulumi.Input[str]],
        *,
        statistic: str = "Sum",
        threshold: float = 0,
    ) -> aws.cloudwatch.MetricAlarm:
        physical_name = f"{self._args.prefix}-{key}"
        self.alarm_names.append(physical_name)
        return alarm(
            f"{self._name}-{key}",
            physical_name=physical_name,
            description=description,
            namespace=namespace,
            metric=metric,
            dimensions=dimensions,
            statistic=statistic,
            threshold=threshold,
            period_seconds=FIVE_MINUTES,
            topic_arn=self._args.topic_arn,
            opts=self._child,
        )
