"""The secrets of a stage: created empty here, written by `./sophia secrets set`, read by whoever declares them."""

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from api_services.secrets import SecretSpec
from infra.access import Access


@dataclass(frozen=True, kw_only=True)
class StageSecretsArgs:
    secrets: Sequence[SecretSpec]
    stage: str
    region: str
    protect: bool
    recovery_days: int
    """Days in which a deleted secret can be restored; 0 deletes at once and frees the name."""
    key_arn: pulumi.Input[str] | None
    """Customer key; none leaves Secrets Manager's own."""


class StageSecrets(pulumi.ComponentResource):
    """One secret per declared name, without a value: none ever passes through this program or its state."""

    def __init__(self, name: str, args: StageSecretsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("sophia:secretsmanager:StageSecrets", name, None, opts)
        self._key_arn, self._region = args.key_arn, args.region
        self._secrets = {
            spec.name: aws.secretsmanager.Secret(
                f"{name}-{spec.name}",
                name=spec.physical_name(args.stage),
                description=spec.description,
                kms_key_id=args.key_arn,
                recovery_window_in_days=args.recovery_days,
                opts=pulumi.ResourceOptions(parent=self, protect=args.protect),
            )
            for spec in args.secrets
        }
        self.arns = {spec_name: secret.arn for spec_name, secret in self._secrets.items()}
        self.register_outputs({"arns": self.arns})

    def grant_read(self, access: Access, spec: SecretSpec) -> None:
        """Let a process read the secret, by the ARN in `<NAME>_SECRET_ARN`; one that the stage lacks is skipped."""
        secret = self._secrets.get(spec.name)
        if secret is None:
            return
        access.allow("ReadSecrets", ["secretsmanager:GetSecretValue"], secret.arn)
        access.set(spec.env_key, secret.arn)
        if self._key_arn is not None:
            via = {"StringEquals": {"kms:ViaService": f"secretsmanager.{self._region}.amazonaws.com"}}
            access.allow_once("DecryptSecrets", ["kms:Decrypt"], self._key_arn, condition=via)
