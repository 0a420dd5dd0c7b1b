"""A function called at a fixed rate by EventBridge Scheduler; what fails every retry lands in a queue of its own."""

from dataclasses import dataclass, replace
from typing import Final

import pulumi
import pulumi_aws as aws

from api_services.schedules import ScheduleSpec
from infra.access import Access
from infra.components.alarm import dead_letter_alarm
from infra.components.lambda_function import LambdaFunction, LambdaFunctionArgs
from infra.components.queue_pair import SECONDS_PER_DAY, close_queue
from infra.policy_documents import policy_document, trust_policy

DLQ_RETENTION_DAYS: Final = 14
SECONDS_PER_MINUTE: Final = 60


@dataclass(frozen=True, kw_only=True)
class ScheduledFunctionArgs:
    spec: ScheduleSpec
    function: LambdaFunctionArgs
    region: str
    group_name: pulumi.Input[str]
    dlq_physical_name: str
    role_physical_name: str
    alarm_topic_arn: pulumi.Input[str]
    protect: bool


class ScheduledFunction(pulumi.ComponentResource):
    """The function, its schedule and the queue of lost events.

    The scheduler calls asynchronously: what it cannot deliver and what the function fails on, each after its retries,
    both end in the one queue, which raises an alarm at the first event.
    """

    def __init__(self, name: str, args: ScheduledFunctionArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        facts = {"messagesMayBeLost": not args.protect}
        super().__init__("sophia:scheduler:ScheduledFunction", name, facts, opts)
        spec = args.spec
        child = pulumi.ResourceOptions(parent=self)
        self.spec = spec
        self.dlq = aws.sqs.Queue(
            f"{name}-dlq",
            name=args.dlq_physical_name,
            message_retention_seconds=DLQ_RETENTION_DAYS * SECONDS_PER_DAY,
            sqs_managed_sse_enabled=True,
            opts=pulumi.ResourceOptions(parent=self, protect=args.protect),
        )
        close_queue(f"{name}-dlq-policy", self.dlq, child)
        self.dlq_alarm_name = f"{args.dlq_physical_name}-depth"
        self.dlq_alarm = dead_letter_alarm(
            f"{name}-dlq-alarm",
            physical_name=self.dlq_alarm_name,
            queue=self.dlq,
            topic_arn=args.alarm_topic_arn,
            opts=child,
        )
        args.function.access.allow("DeadLetter", ["sqs:SendMessage"], self.dlq.arn)
        self.job = LambdaFunction(name, replace(args.function, dead_letter_arn=self.dlq.arn), child)
        role = aws.iam.Role(
            f"{name}-scheduler-role",
            name=args.role_physical_name,
            assume_role_policy=trust_policy("scheduler.amazonaws.com"),
            opts=child,
        )
        access = Access()
        access.allow("Call", ["lambda:InvokeFunction"], self.job.function.arn)
        access.allow("DeadLetter", ["sqs:SendMessage"], self.dlq.arn)
        if args.function.key_arn is not None:
            via = {"StringEquals": {"kms:ViaService": f"scheduler.{args.region}.amazonaws.com"}}
            access.allow("ReadSchedule", ["kms:Decrypt"], args.function.key_arn, condition=via)
        policy = aws.iam.RolePolicy(
            f"{name}-scheduler-policy",
            name="declared-use",
            role=role.id,
            policy=policy_document(access.statements),
            opts=child,
        )
        self.schedule = aws.scheduler.Schedule(
            f"{name}-schedule",
            name=spec.name,
            group_name=args.group_name,
            description=spec.purpose,
            kms_key_arn=args.function.key_arn,
            schedule_expression=_rate(spec.rate_minutes),
            flexible_time_window=aws.scheduler.ScheduleFlexibleTimeWindowArgs(mode="OFF"),
            target=aws.scheduler.ScheduleTargetArgs(
                arn=self.job.function.arn,
                role_arn=role.arn,
                retry_policy=aws.scheduler.ScheduleTargetRetryPolicyArgs(
                    maximum_retry_attempts=spec.max_retries,
                    # A later run does the same work, so an event older than the interval is of no use.
                    maximum_event_age_in_seconds=spec.rate_minutes * SECONDS_PER_MINUTE,
                ),
                dead_letter_config=aws.scheduler.ScheduleTargetDeadLetterConfigArgs(arn=self.dlq.arn),
            ),
            opts=pulumi.ResourceOptions(parent=self, depends_on=[policy]),
        )
        self.register_outputs({"dlqUrl": self.dlq.url, **facts})


def _rate(minutes: int) -> str:
    return "rate(1 minute)" if minutes == 1 else f"rate({minutes} minutes)"
