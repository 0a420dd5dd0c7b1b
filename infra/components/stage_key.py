"""The customer key of a stage: logs, secrets and alarms are encrypted with it."""

from dataclasses import dataclass
from typing import Any, Final

import pulumi
import pulumi_aws as aws

from infra.documents import policy_document

DELETION_WINDOW_DAYS: Final = 30


@dataclass(frozen=True, kw_only=True)
class StageKeyArgs:
    stage: str
    region: str
    protect: bool


class StageKey(pulumi.ComponentResource):
    """A rotating KMS key whose policy admits the account, the region's CloudWatch Logs and CloudWatch alarms.

    Alarms need the grant: a topic under a key that CloudWatch may not use drops every notification without a word.
    """

    def __init__(self, name: str, args: StageKeyArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("sophia:kms:StageKey", name, None, opts)
        self.key = aws.kms.Key(
            f"{name}-key",
            description=f"Logs, secrets and alarms of Sophia's stage {args.stage}",
            enable_key_rotation=True,
            deletion_window_in_days=DELETION_WINDOW_DAYS,
            opts=pulumi.ResourceOptions(parent=self, protect=args.protect),
        )
        self.policy = aws.kms.KeyPolicy(
            f"{name}-policy",
            key_id=self.key.key_id,
            policy=policy_document(_statements(self.key.arn, args.region)),
            opts=pulumi.ResourceOptions(parent=self),
        )
        aws.kms.Alias(
            f"{name}-alias",
            name=f"alias/sophia-{args.stage}",
            target_key_id=self.key.key_id,
            opts=pulumi.ResourceOptions(parent=self),
        )
        # Users of the key wait for its policy: CloudWatch Logs tests the key when a group is created.
        self.arn = pulumi.Output.all(self.key.arn, self.policy.id).apply(lambda known: str(known[0]))
        self.register_outputs({"arn": self.arn})


def _statements(key_arn: pulumi.Output[str], region: str) -> list[dict[str, Any]]:
    account = key_arn.apply(lambda arn: arn.split(":")[4])
    return [
        {
            "Sid": "AccountAdministers",
            "Effect": "Allow",
            "Principal": {"AWS": pulumi.Output.concat("arn:aws:iam::", account, ":root")},
            "Action": "kms:*",
            "Resource": key_arn,
        },
        {
            "Sid": "AlarmsPublish",
            "Effect": "Allow",
            "Principal": {"Service": "cloudwatch.amazonaws.com"},
            "Action": ["kms:Decrypt", "kms:GenerateDataKey*"],
            "Resource": key_arn,
            "Condition": {"StringEquals": {"aws:SourceAccount": account}},
        },
        {
            "Sid": "LogsEncrypt",
            "Effect": "Allow",
            "Principal": {"Service": f"logs.{region}.amazonaws.com"},
            "Action": ["kms:Decrypt", "kms:DescribeKey", "kms:Encrypt*", "kms:GenerateDataKey*", "kms:ReEncrypt*"],
            "Resource": key_arn,
            "Condition": {
                "ArnLike": {
                    "kms:EncryptionContext:aws:logs:arn": pulumi.Output.concat(
                        "arn:aws:logs:", region, ":", account, ":log-group:*"
                    )
                }
            },
        },
    ]
