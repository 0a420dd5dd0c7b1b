"""CloudWatch alarms of one shape: a sum or maximum over a period; each notifies the topic on ALARM and on OK."""

from collections.abc import Mapping
from typing import Final

import pulumi
import pulumi_aws as aws

PERIOD_SECONDS: Final = 60


def alarm(
    name: str,
    *,
    physical_name: str,
    description: str,
    namespace: str,
    metric: str,
    dimensions: Mapping[str, pulumi.Input[str]],
    statistic: str,
    threshold: float,
    topic_arn: pulumi.Input[str],
    opts: pulumi.ResourceOptions,
    period_seconds: int = PERIOD_SECONDS,
    periods: int = 1,
) -> aws.cloudwatch.MetricAlarm:
    """Raise when the metric is above `threshold` for `periods`; no data is fine. OK notifies the topic as well."""
    return aws.cloudwatch.MetricAlarm(
        name,
        name=physical_name,
        alarm_description=description,
        namespace=namespace,
        metric_name=metric,
        dimensions=dict(dimensions),
        statistic=statistic,
        comparison_operator="GreaterThanThreshold",
        threshold=threshold,
        period=period_seconds,
        evaluation_periods=periods,
        treat_missing_data="notBreaching",
        alarm_actions=[topic_arn],
        ok_actions=[topic_arn],
        opts=opts,
    )


def dead_letter_alarm(
    name: str,
    *,
    physical_name: str,
    queue: aws.sqs.Queue,
    topic_arn: pulumi.Input[str],
    opts: pulumi.ResourceOptions,
) -> aws.cloudwatch.MetricAlarm:
    """Raise at the first message in a dead-letter queue, and stay raised until it is empty."""
    return alarm(
        name,
        physical_name=physical_name,
        description="Dead messages: `./sophia dlq list` shows why, `./sophia dlq redrive` tries again.",
        namespace="AWS/SQS",
        metric="ApproximateNumberOfMessagesVisible",
        dimensions={"QueueName": queue.name},
        statistic="Maximum",
        threshold=0,
        topic_arn=topic_arn,
        opts=opts,
    )
