"""The registry of the API's images: tags never move, every image is scanned, old ones go."""

from dataclasses import dataclass
from typing import Final

import pulumi
import pulumi_aws as aws

from infra.policy_documents import JsonDocument

IMAGES_KEPT: Final = 50
UNTAGGED_DAYS: Final = 7


@dataclass(frozen=True, kw_only=True)
class ImageRepositoryArgs:
    physical_name: str
    key_arn: pulumi.Input[str] | None
    protect: bool


class ImageRepository(pulumi.ComponentResource):
    """An ECR repository. `url` is what CI pushes to."""

    def __init__(self, name: str, args: ImageRepositoryArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("sophia:ecr:ImageRepository", name, None, opts)
        encryption = aws.ecr.RepositoryEncryptionConfigurationArgs(encryption_type="KMS", kms_key=args.key_arn)
        self.repository = aws.ecr.Repository(
            f"{name}-repository",
            name=args.physical_name,
            image_tag_mutability="IMMUTABLE",
            image_scanning_configuration=aws.ecr.RepositoryImageScanningConfigurationArgs(scan_on_push=True),
            encryption_configurations=None if args.key_arn is None else [encryption],
            opts=pulumi.ResourceOptions(parent=self, protect=args.protect),
        )
        aws.ecr.LifecyclePolicy(
            f"{name}-lifecycle",
            repository=self.repository.name,
            policy=JsonDocument(
                {
                    "rules": [
                        _expire(1, "untagged", {"countType": "sinceImagePushed", "countUnit": "days"}, UNTAGGED_DAYS),
                        _expire(2, "any", {"countType": "imageCountMoreThan"}, IMAGES_KEPT),
                    ]
                }
            ),
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.url = self.repository.repository_url
        self.register_outputs({"url": self.url})


def _expire(priority: int, tag_status: str, count: dict[str, str], number: int) -> dict[str, object]:
    selection = {"tagStatus": tag_status, "countNumber": number, **count}
    return {"rulePriority": priority, "selection": selection, "action": {"type": "expire"}}
