"""One resource of every type in the table, with as many of its inputs as go together."""

import json
from typing import Any

import pulumi
import pulumi_aws as aws


def trust(service: str) -> str:
    statement = {"Effect": "Allow", "Principal": {"Service": service}, "Action": "sts:AssumeRole"}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]}, indent=2)


def allow(action: str, resource: pulumi.Input[str], principal: Any = None) -> pulumi.Output[str]:
    statement: dict[str, Any] = {"Sid": "Stated", "Effect": "Allow", "Action": [action], "Resource": resource}
    if principal is not None:
        statement["Principal"] = principal
    return pulumi.Output.json_dumps({"Version": "2012-10-17", "Statement": [statement]})


dlq = aws.sqs.Queue("dlq", message_retention_seconds=1_209_600, sqs_managed_sse_enabled=True, tags={"kind": "dead"})
queue = aws.sqs.Queue(
    "queue",
    name="rows-queue",
    visibility_timeout_seconds=370,
    receive_wait_time_seconds=20,
    max_message_size=262_144,
    delay_seconds=0,
)
aws.sqs.Queue(
    "fifo",
    fifo_queue=True,
    content_based_deduplication=True,
    deduplication_scope="messageGroup",
    fifo_throughput_limit="perMessageGroupId",
)
redrive = {"maxReceiveCount": "3", "deadLetterTargetArn": dlq.arn}
aws.sqs.RedrivePolicy("redrive", queue_url=queue.url, redrive_policy=pulumi.Output.json_dumps(redrive))
redrive_allow = {"sourceQueueArns": [queue.arn], "redrivePermission": "byQueue"}
aws.sqs.RedriveAllowPolicy(
    "redrive-allow", queue_url=dlq.url, redrive_allow_policy=pulumi.Output.json_dumps(redrive_allow)
)
aws.sqs.QueuePolicy("queue-policy", queue_url=queue.url, policy=allow("sqs:SendMessage", queue.arn, "*"))

role = aws.iam.Role("role", assume_role_policy=trust("lambda.amazonaws.com"), description="runs", path="/rows/")
inline = aws.iam.RolePolicy("inline", role=role.id, policy=allow("sqs:ReceiveMessage", queue.arn))

logs = aws.cloudwatch.LogGroup("logs", name="/aws/lambda/rows-function", retention_in_days=14)
function = aws.lambda_.Function(
    "function",
    name="rows-function",
    role=role.arn,
    runtime="python3.11",
    handler="handler.handler",
    code=pulumi.AssetArchive({"handler.py": pulumi.StringAsset("def handler(event, context):\n    return {}\n")}),
    timeout=60,
    memory_size=512,
    architectures=["x86_64"],
    description="does nothing",
    environment={
        "variables": {"QUEUE_URL": queue.url, "lower_case": "x", "TOKEN": pulumi.Output.secret("hush-hush-token")}
    },
    dead_letter_config={"target_arn": dlq.arn},
    logging_config={"log_format": "JSON", "log_group": logs.name},
    ephemeral_storage={"size": 1024},
    tracing_config={"mode": "Active"},
    reserved_concurrent_executions=5,
    opts=pulumi.ResourceOptions(depends_on=[inline, logs]),
)
aws.lambda_.Function(
    "plain",
    role=role.arn,
    runtime="python3.11",
    handler="handler.handler",
    code=pulumi.AssetArchive({"handler.py": pulumi.StringAsset("def handler(event, context):\n    return {}\n")}),
)
aws.lambda_.EventSourceMapping(
    "mapping",
    event_source_arn=queue.arn,
    function_name=function.arn,
    batch_size=10,
    maximum_batching_window_in_seconds=1,
    function_response_types=["ReportBatchItemFailures"],
    scaling_config={"maximum_concurrency": 10},
    filter_criteria={"filters": [{"pattern": json.dumps({"body": {"type": ["a"]}})}]},
)
aws.lambda_.FunctionRecursionConfig("recursion", function_name=function.name, recursive_loop="Allow")

key = aws.kms.Key("key", description="encrypts", enable_key_rotation=True, deletion_window_in_days=7)
aws.kms.Alias("alias", target_key_id=key.key_id)

topic = aws.sns.Topic("topic", kms_master_key_id=key.arn, display_name="Rows")
aws.sns.Topic("bare-topic")
aws.sns.TopicPolicy(
    "topic-policy", arn=topic.arn, policy=allow("sns:Publish", topic.arn, {"Service": "cloudwatch.amazonaws.com"})
)
aws.sns.TopicSubscription("subscription", topic=topic.arn, protocol="email", endpoint="oncall@example.com")

aws.cloudwatch.MetricAlarm(
    "alarm",
    alarm_description="dead letters",
    namespace="AWS/SQS",
    metric_name="ApproximateNumberOfMessagesVisible",
    dimensions={"QueueName": dlq.name},
    statistic="Maximum",
    comparison_operator="GreaterThanThreshold",
    threshold=0,
    period=60,
    evaluation_periods=1,
    treat_missing_data="notBreaching",
    alarm_actions=[topic.arn],
    ok_actions=[topic.arn],
)
aws.cloudwatch.MetricAlarm(
    "math-alarm",
    comparison_operator="GreaterThanThreshold",
    threshold=0.5,
    evaluation_periods=1,
    metric_queries=[
        {
            "id": "sent",
            "metric": {
                "namespace": "AWS/SQS",
                "metric_name": "NumberOfMessagesSent",
                "period": 60,
                "stat": "Sum",
                "dimensions": {"QueueName": queue.name},
            },
        },
        {"id": "twice", "expression": "sent*2", "label": "twice", "return_data": True},
    ],
)
aws.cloudwatch.Dashboard(
    "dashboard", dashboard_name="rows-dashboard", dashboard_body=json.dumps({"widgets": []}, indent=1)
)

aws.secretsmanager.Secret("secret", name="rows/secret", description="empty", recovery_window_in_days=0)

group = aws.scheduler.ScheduleGroup("group")
aws.scheduler.Schedule(
    "schedule",
    group_name=group.name,
    schedule_expression="rate(10 minutes)",
    flexible_time_window={"mode": "OFF"},
    description="reconciles",
    target={
        "arn": function.arn,
        "role_arn": role.arn,
        "retry_policy": {"maximum_retry_attempts": 2},
        "dead_letter_config": {"arn": dlq.arn},
        "input": json.dumps({"b": 1, "a": 2}),
    },
)

pulumi.export("account", aws.get_caller_identity().account_id)
pulumi.export("functionArn", function.arn)
