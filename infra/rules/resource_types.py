"""Pulumi's names of the resource types that rules look at."""

from typing import Final

QUEUE: Final = "aws:sqs/queue:Queue"
QUEUE_POLICY: Final = "aws:sqs/queuePolicy:QueuePolicy"
REDRIVE: Final = "aws:sqs/redrivePolicy:RedrivePolicy"
REDRIVE_ALLOW: Final = "aws:sqs/redriveAllowPolicy:RedriveAllowPolicy"
FUNCTION: Final = "aws:lambda/function:Function"
MAPPING: Final = "aws:lambda/eventSourceMapping:EventSourceMapping"
LOG_GROUP: Final = "aws:cloudwatch/logGroup:LogGroup"
ALARM: Final = "aws:cloudwatch/metricAlarm:MetricAlarm"
SCHEDULE: Final = "aws:scheduler/schedule:Schedule"
TOPIC: Final = "aws:sns/topic:Topic"
SUBSCRIPTION: Final = "aws:sns/topicSubscription:TopicSubscription"
KEY: Final = "aws:kms/key:Key"
ROLE_POLICY: Final = "aws:iam/rolePolicy:RolePolicy"
TASK: Final = "aws:ecs/taskDefinition:TaskDefinition"
