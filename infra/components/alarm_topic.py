"""The topic that every alarm tells, with its subscribers."""

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from infra.policy_documents import policy_document


@dataclass(frozen=True, kw_only=True)
class AlarmTopicArgs:
    physical_name: str
    emails: Sequence[str]
    key_arn: pulumi.Input[str] | None


class AlarmTopic(pulumi.ComponentResource):
    """An SNS topic that CloudWatch alarms of this account may publish to, over TLS, and its e-mail subscribers."""

    def __init__(self, name: str, args: AlarmTopicArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("sophia:sns:AlarmTopic", name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        self.topic = aws.sns.Topic(
            f"{name}-topic",
            name=args.physical_name,
            kms_master_key_id=args.key_arn,
            opts=child,
        )
        account = self.topic.arn.apply(lambda arn: arn.split(":")[4])
        aws.sns.TopicPolicy(
            f"{name}-policy",
            arn=self.topic.arn,
            policy=policy_document(
                [
                    {
                        "Sid": "AlarmsPublish",
                        "Effect": "Allow",
                        "Principal": {"Service": "cloudwatch.amazonaws.com"},
                        "Action": "sns:Publish",
                        "Resource": self.topic.arn,
                        "Condition": {"StringEquals": {"aws:SourceAccount": account}},
                    },
                    {
                        "Sid": "TlsOnly",
                        "Effect": "Deny",
                        "Principal": "*",
                        "Action": "sns:Publish",
                        "Resource": self.topic.arn,
                        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
                    },
                ]
            ),
            opts=child,
        )
        for email in args.emails:
            aws.sns.TopicSubscription(
                f"{name}-{email.replace('@', '-at-')}",
                topic=self.topic.arn,
                protocol="email",
                endpoint=email,
                opts=child,
            )
        self.arn = self.topic.arn
        self.register_outputs({"arn": self.arn})
