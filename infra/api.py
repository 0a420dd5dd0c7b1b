"""The Fargate service of the API and its environment."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pulumi
import pulumi_aws as aws

from api_services.function_spec import physical_name
from api_services.http.settings import ApiSettings
from api_services.queues import API, queues_sent_by
from api_services.secrets import SECRETS
from infra.components.http_service import HttpService, HttpServiceArgs
from infra.components.image_repository import ImageRepository, ImageRepositoryArgs
from infra.components.load_balancer import NAME_MAX, LoadBalancer, LoadBalancerArgs
from infra.components.queue_pair import QueuePair
from infra.config import ApiConfig, StageConfig, secret_names, setting_names
from infra.foundation import Foundation
from infra.processes import declared_access

PORT: Final = 8000
HEALTH_PATH: Final = "/healthz"
"""Alive, not ready: tasks must not be replaced since MongoDB is away."""

PROBE: Final = f"import urllib.request as r; r.urlopen('http://127.0.0.1:{PORT}{HEALTH_PATH}', timeout=3)"


@dataclass(frozen=True, kw_only=True)
class Network:
    vpc_id: pulumi.Input[str]
    load_balancer_subnet_ids: pulumi.Input[Sequence[str]]
    task_subnet_ids: pulumi.Input[Sequence[str]]
    public: bool


@dataclass(frozen=True, kw_only=True)
class Api:
    repository: ImageRepository
    load_balancer: LoadBalancer | None
    service: HttpService | None
    """None until an image is chosen."""


def build_api(config: StageConfig, foundation: Foundation, pairs: Mapping[str, QueuePair]) -> Api | None:
    """The repository of images and, once `apiImageTag` names one, the service. None on a stage without either."""
    if config.api is None:
        return None
    repository = ImageRepository(
        "api-images",
        ImageRepositoryArgs(
            physical_name=physical_name(config.stage, "api"),
            key_arn=foundation.key_arn,
            protect=config.protect_stateful,
        ),
    )
    if config.api.image_tag is None:
        return Api(repository=repository, load_balancer=None, service=None)
    network = _network(config.api)
    load_balancer = LoadBalancer(
        "api-balancer",
        LoadBalancerArgs(
            physical_name=physical_name(config.stage, "api", limit=NAME_MAX),
            vpc_id=network.vpc_id,
            subnet_ids=network.load_balancer_subnet_ids,
            certificate_arn=config.api.certificate_arn,
            target_port=PORT,
            health_path=HEALTH_PATH,
            protect=config.protect_stateful,
        ),
    )
    access = declared_access(
        API,
        config,
        foundation,
        pairs,
        [secret for secret in SECRETS if secret.setting in secret_names(ApiSettings)],
        setting_names(ApiSettings),
    )
    # Readiness asks each queue for its ARN, which the right to send does not cover.
    access.allow("Ready", ["sqs:GetQueueAttributes"], *(pairs[spec.name].queue.arn for spec in queues_sent_by(API)))
    service = HttpService(
        "api",
        HttpServiceArgs(
            physical_name=physical_name(config.stage, "api", limit=NAME_MAX),
            region=config.region,
            image=pulumi.Output.concat(repository.url, ":", config.api.image_tag),
            repository_arn=repository.repository.arn,
            architecture=config.architecture,
            access=access,
            load_balancer=load_balancer,
            vpc_id=network.vpc_id,
            subnet_ids=network.task_subnet_ids,
            public_subnets=network.public,
            port=PORT,
            health_command=["python", "-c", PROBE],
            cpu=config.api.cpu,
            memory_mb=config.api.memory_mb,
            desired_tasks=config.api.desired_tasks,
            max_tasks=config.api.max_tasks,
            log_retention_days=config.log_retention_days,
            key_arn=foundation.key_arn,
        ),
    )
    return Api(repository=repository, load_balancer=load_balancer, service=service)


def _network(api: ApiConfig) -> Network:
    if api.network is not None:
        return Network(
            vpc_id=api.network.vpc_id,
            load_balancer_subnet_ids=api.network.load_balancer_subnet_ids,
            task_subnet_ids=api.network.task_subnet_ids,
            public=False,
        )
    vpc = aws.ec2.get_vpc_output(default=True)
    filters = vpc.id.apply(
        lambda vpc_id: [
            aws.ec2.GetSubnetsFilterArgs(name="vpc-id", values=[vpc_id]),
            aws.ec2.GetSubnetsFilterArgs(name="default-for-az", values=["true"]),
        ]
    )
    subnets = aws.ec2.get_subnets_output(filters=filters)
    # In the order of their ids: AWS lists them in any order, which would look like a change.
    ids = subnets.ids.apply(lambda found: sorted(found))
    return Network(vpc_id=vpc.id, load_balancer_subnet_ids=ids, task_subnet_ids=ids, public=True)
