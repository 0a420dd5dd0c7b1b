"""A queue with its dead-letter queue, their policies and the alarm on the dead messages."""

from dataclasses import dataclass
from typing import Any, Final

import pulumi
import pulumi_aws as aws

from api_services.queues import QueueSpec
from infra.access import Access
from infra.components.alarm import dead_letter_alarm
from infra.policy_documents import JsonDocument, policy_document

SECONDS_PER_DAY: Final = 86_400
LONG_POLL_SECONDS: Final = 20
"""The longest wait SQS allows; fewer empty receives (SQS guide, sqs-short-and-long-polling)."""


@dataclass(frozen=True, kw_only=True)
class QueuePairArgs:
    spec: QueueSpec[Any]
    stage: str
    alarm_topic_arn: pulumi.Input[str]
    protect: bool


class QueuePair(pulumi.ComponentResource):
    """A queue and its dead-letter queue. Senders and consumers get their rights from the `grant_*` methods."""

    def __init__(self, name: str, args: QueuePairArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        facts = {"messagesMayBeLost": not args.protect}
        super().__init__("sophia:sqs:QueuePair", name, facts, opts)
        spec = args.spec
        self.spec = spec
        child = pulumi.ResourceOptions(parent=self)
        stateful = pulumi.ResourceOptions(parent=self, protect=args.protect)
        self.dlq = aws.sqs.Queue(
            f"{name}-dlq",
            name=spec.dlq_physical_name(args.stage),
            fifo_queue=spec.fifo or None,
            message_retention_seconds=spec.dlq_retention_days * SECONDS_PER_DAY,
            sqs_managed_sse_enabled=True,
            opts=stateful,
        )
        self.queue = aws.sqs.Queue(
            f"{name}-queue",
            name=spec.physical_name(args.stage),
            fifo_queue=spec.fifo or None,
            visibility_timeout_seconds=spec.visibility_timeout_seconds,
            message_retention_seconds=spec.retention_days * SECONDS_PER_DAY,
            receive_wait_time_seconds=LONG_POLL_SECONDS,
            sqs_managed_sse_enabled=True,
            opts=stateful,
        )
        # Two resources of their own: as inputs of the queues, each would need the other's ARN first.
        aws.sqs.RedrivePolicy(
            f"{name}-redrive",
            queue_url=self.queue.url,
            redrive_policy=JsonDocument(
                {"deadLetterTargetArn": self.dlq.arn, "maxReceiveCount": spec.max_receive_count}
            ),
            opts=child,
        )
        aws.sqs.RedriveAllowPolicy(
            f"{name}-redrive-allow",
            queue_url=self.dlq.url,
            redrive_allow_policy=JsonDocument({"redrivePermission": "byQueue", "sourceQueueArns": [self.queue.arn]}),
            opts=child,
        )
        close_queue(f"{name}-queue-policy", self.queue, child)
        close_queue(f"{name}-dlq-policy", self.dlq, child)
        self.dlq_alarm_name = f"{spec.dlq_physical_name(args.stage)}-depth"
        self.dlq_alarm = dead_letter_alarm(
            f"{name}-dlq-alarm",
            physical_name=self.dlq_alarm_name,
            queue=self.dlq,
            topic_arn=args.alarm_topic_arn,
            opts=child,
        )
        self.register_outputs({"url": self.queue.url, "dlqUrl": self.dlq.url, **facts})

    def grant_send(self, access: Access) -> None:
        """Let a producer send; it finds the URL in `<NAME>_QUEUE_URL`."""
        access.allow("Send", ["sqs:SendMessage"], self.queue.arn)
        access.environment[self.spec.url_env_key] = self.queue.url

    def grant_consume(self, access: Access) -> None:
        """Let a consumer receive, settle and put off messages, and dead-letter what no retry can help."""
        access.allow(
            "Consume",
            ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility", "sqs:GetQueueAttributes"],
            self.queue.arn,
        )
        access.allow("DeadLetter", ["sqs:SendMessage"], self.dlq.arn)
        access.environment[self.spec.url_env_key] = self.queue.url
        access.set(self.spec.dlq_url_env_key, self.dlq.url)


def close_queue(name: str, queue: aws.sqs.Queue, opts: pulumi.ResourceOptions) -> aws.sqs.QueuePolicy:
    """Refuse other accounts and plain HTTP. Grants come from the roles of this account, not from here."""
    owner = queue.arn.apply(lambda arn: arn.split(":")[4])
    return aws.sqs.QueuePolicy(
        name,
        queue_url=queue.url,
        policy=policy_document(
            [
                {
                    "Sid": "OwnerOnly",
                    "Effect": "Deny",
                    "Principal": "*",
                    "Action": "sqs:*",
                    "Resource": queue.arn,
                    "Condition": {"StringNotEquals": {"aws:PrincipalAccount": owner}},
                },
                {
                    "Sid": "TlsOnly",
                    "Effect": "Deny",
                    "Principal": "*",
                    "Action": "sqs:*",
                    "Resource": queue.arn,
                    "Condition": {"Bool": {"aws:SecureTransport": "false"}},
                },
            ]
        ),
        opts=opts,
    )
