"""The customer key of a stage: logs, secrets and alarms are encrypted with it."""

from dataclasses import dataclass
from typing import Any, Final

import pulumi
import pulumi_aws as aws

from infra.policy_documents import policy_document

DELETION_WINDOW_DAYS: Final = 30
THIS_KEY: Final = "*"
"""In the policy of a key: that key, and nothing else (KMS guide, key-policy-overview)."""


@dataclass(frozen=True, kw_only=True)
class StageKeyArgs:
    stage: str
    region: str
    account_id: pulumi.Input[str]
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
            policy=policy_document(_statements(args.account_id, args.region)),
            opts=pulumi.ResourceOptions(parent=self, protect=args.protect),
        )
        aws.kms.Alias(
            f"{name}-alias",
            name=f"alias/sophia-{args.stage}",
            target_key_id=self.key.id,
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.arn = self.key.arn
        self.register_outputs({"arn": self.arn})


def _statements(account: pulumi.Input[str], region: str) -> list[dict[str, Any]]:
    return [
        {
            "Sid": "AccountAdministers",
            "Effect": "Allow",
            "Principal": {"AWS": pulumi.Output.concat("arn:aws:iam::", account, ":root")},
            "Action": "kms:*",
            "Resource": THIS_KEY,
        },
        {
            "Sid": "AlarmsPublish",
            "Effect": "Allow",
            "Principal": {"Service": "cloudwatch.amazonaws.com"},
            "Action": ["kms:Decrypt", "kms:GenerateDataKey*"],
            "Resource": THIS_KEY,
            "Condition": {"StringEquals": {"aws:SourceAccount": account}},
        },
        {
            "Sid": "LogsEncrypt",
            "Effect": "Allow",
            "Principal": {"Service": f"logs.{region}.amazonaws.com"},
            "Action": ["kms:Decrypt", "kms:DescribeKey", "kms:Encrypt*", "kms:GenerateDataKey*", "kms:ReEncrypt*"],
            "Resource": THIS_KEY,
            "Condition": {
                "ArnLike": {
                    "kms:EncryptionContext:aws:logs:arn": pulumi.Output.concat(
                        "arn:aws:logs:", region, ":", account, ":log-group:*"
                    )
                }
            },
        },
    ]
