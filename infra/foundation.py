"""What everything else in a stage rests on: its key, its alarm topic and its secrets."""

from dataclasses import dataclass
from typing import Final

import pulumi
import pulumi_aws as aws

from api_services.function_spec import physical_name
from infra.components.alarm_topic import AlarmTopic, AlarmTopicArgs
from infra.components.stage_key import StageKey, StageKeyArgs
from infra.components.stage_secrets import StageSecrets, StageSecretsArgs
from infra.config import StageConfig

RECOVERY_DAYS: Final = 30
TOPIC_NAME_MAX: Final = 256


@dataclass(frozen=True, kw_only=True)
class Foundation:
    """`key_arn` is None where the stage encrypts with the services' own keys."""

    key_arn: pulumi.Output[str] | None
    topic: AlarmTopic
    secrets: StageSecrets


def build_foundation(config: StageConfig) -> Foundation:
    """Build key, topic and secrets."""
    key_arn = None
    if config.customer_key:
        account_id = aws.get_caller_identity_output().account_id
        key_arn = StageKey(
            "stage",
            StageKeyArgs(
                stage=config.stage, region=config.region, account_id=account_id, protect=config.protect_stateful
            ),
        ).arn
    topic = AlarmTopic(
        "alarms",
        AlarmTopicArgs(
            physical_name=physical_name(config.stage, "alarms", limit=TOPIC_NAME_MAX),
            emails=config.alarm_emails,
            key_arn=key_arn,
        ),
    )
    secrets = StageSecrets(
        "secret",
        StageSecretsArgs(
            secrets=config.secrets,
            stage=config.stage,
            region=config.region,
            protect=config.protect_stateful,
            recovery_days=RECOVERY_DAYS if config.protect_stateful else 0,
            key_arn=key_arn,
        ),
    )
    return Foundation(key_arn=key_arn, topic=topic, secrets=secrets)
