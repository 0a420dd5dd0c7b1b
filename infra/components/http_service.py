"""An HTTP service on Fargate behind a load balancer."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import pulumi
import pulumi_aws as aws

from infra.access import Access
from infra.components.load_balancer import EVERYWHERE, HTTPS_PORT, LoadBalancer
from infra.policy_documents import JsonDocument, policy_document, trust_policy

CPU_TARGET_PERCENT: Final = 60
SCALE_OUT_SECONDS: Final = 60
SCALE_IN_SECONDS: Final = 300
STOP_TIMEOUT_SECONDS: Final = 30
MONGODB_PORT: Final = 27017
PULL_ACTIONS: Final = ("ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer")
LOG_ACTIONS: Final = ("logs:CreateLogStream", "logs:PutLogEvents")


@dataclass(frozen=True, kw_only=True)
class HttpServiceArgs:
    physical_name: str
    region: str
    image: pulumi.Input[str]
    repository_arn: pulumi.Input[str]
    architecture: str
    access: Access
    """Rights and environment of the process."""
    load_balancer: LoadBalancer
    vpc_id: pulumi.Input[str]
    subnet_ids: pulumi.Input[Sequence[str]]
    public_subnets: bool
    """Tasks in public subnets need a public address to reach AWS; nothing can reach them but the load balancer."""
    port: int
    health_command: Sequence[str]
    """Run inside the container; anything but exit code 0 replaces the task."""
    cpu: int
    memory_mb: int
    desired_tasks: int
    max_tasks: int
    log_retention_days: int
    key_arn: pulumi.Input[str] | None


class HttpService(pulumi.ComponentResource):
    """Cluster, task definition, service, scaling and the two roles: the process's own and the one that starts it."""

    def __init__(self, name: str, args: HttpServiceArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("sophia:ecs:HttpService", name, None, opts)
        self._child = pulumi.ResourceOptions(parent=self)
        self._name, self._args = name, args
        self.log_group = aws.cloudwatch.LogGroup(
            f"{name}-logs",
            name=f"/ecs/{args.physical_name}",
            retention_in_days=args.log_retention_days,
            kms_key_id=args.key_arn,
            opts=self._child,
        )
        self.cluster = aws.ecs.Cluster(
            f"{name}-cluster",
            name=args.physical_name,
            settings=[aws.ecs.ClusterSettingArgs(name="containerInsights", value="enabled")],
            opts=self._child,
        )
        start = Access()
        start.allow("FindRegistry", ["ecr:GetAuthorizationToken"], "*")
        start.allow("Pull", PULL_ACTIONS, args.repository_arn)
        start.allow("Log", LOG_ACTIONS, pulumi.Output.concat(self.log_group.arn, ":*"))
        self.execution_role = self._role("execution", start)
        self.task_role = self._role("task", args.access)
        self.task = aws.ecs.TaskDefinition(
            f"{name}-task",
            family=args.physical_name,
            requires_compatibilities=["FARGATE"],
            network_mode="awsvpc",
            cpu=str(args.cpu),
            memory=str(args.memory_mb),
            execution_role_arn=self.execution_role.arn,
            task_role_arn=self.task_role.arn,
            runtime_platform=aws.ecs.TaskDefinitionRuntimePlatformArgs(
                cpu_architecture=args.architecture.upper(), operating_system_family="LINUX"
            ),
            container_definitions=JsonDocument([self._container()]),
            opts=self._child,
        )
        self.service = aws.ecs.Service(
            f"{name}-service",
            name=args.physical_name,
            cluster=self.cluster.arn,
            task_definition=self.task.arn,
            launch_type="FARGATE",
            platform_version="LATEST",
            desired_count=args.desired_tasks,
            deployment_minimum_healthy_percent=100,
            deployment_maximum_percent=200,
            deployment_circuit_breaker=aws.ecs.ServiceDeploymentCircuitBreakerArgs(enable=True, rollback=True),
            health_check_grace_period_seconds=60,
            propagate_tags="SERVICE",
            network_configuration=aws.ecs.ServiceNetworkConfigurationArgs(
                subnets=args.subnet_ids,
                security_groups=[self._security_group().id],
                assign_public_ip=args.public_subnets,
            ),
            load_balancers=[
                aws.ecs.ServiceLoadBalancerArgs(
                    target_group_arn=args.load_balancer.target_group.arn, container_name=name, container_port=args.port
                )
            ],
            # Scaling owns the number of tasks after the first deployment.
            opts=pulumi.ResourceOptions(
                parent=self, ignore_changes=["desiredCount"], depends_on=[args.load_balancer.listener]
            ),
        )
        self._scale()
        self.register_outputs({"service": self.service.name})

    def _container(self) -> dict[str, Any]:
        args = self._args
        return {
            "name": self._name,
            "image": args.image,
            "essential": True,
            "readonlyRootFilesystem": True,
            "user": "10001:10001",
            "linuxParameters": {"initProcessEnabled": True, "capabilities": {"drop": ["ALL"]}},
            "portMappings": [{"containerPort": args.port, "protocol": "tcp"}],
            "stopTimeout": STOP_TIMEOUT_SECONDS,
            "environment": [{"name": key, "value": value} for key, value in sorted(args.access.environment.items())],
            "healthCheck": {
                "command": ["CMD", *args.health_command],
                "interval": 15,
                "timeout": 5,
                "retries": 3,
                "startPeriod": 30,
            },
            "logConfiguration": {
                "logDriver": "awslogs",
                "options": {
                    "awslogs-group": self.log_group.name,
                    "awslogs-region": args.region,
                    "awslogs-stream-prefix": self._name,
                    # A log that cannot be written must not stop requests.
                    "mode": "non-blocking",
                    "max-buffer-size": "4m",
                },
            },
        }

    def _role(self, purpose: str, access: Access) -> aws.iam.Role:
        role = aws.iam.Role(
            f"{self._name}-{purpose}-role",
            name=f"{self._args.physical_name}-{purpose}",
            assume_role_policy=trust_policy("ecs-tasks.amazonaws.com"),
            opts=self._child,
        )
        aws.iam.RolePolicy(
            f"{self._name}-{purpose}-policy",
            name="declared-use",
            role=role.id,
            policy=policy_document(access.statements),
            opts=self._child,
        )
        return role

    # Quoted: naming the type would load all of EC2, two seconds, on stages that have no service.
    def _security_group(self) -> "aws.ec2.SecurityGroup":
        args = self._args
        group = aws.ec2.SecurityGroup(
            f"{self._name}-security-group",
            description="Tasks of the API",
            vpc_id=args.vpc_id,
            opts=self._child,
        )
        aws.vpc.SecurityGroupIngressRule(
            f"{self._name}-from-balancer",
            description="The load balancer alone",
            security_group_id=group.id,
            referenced_security_group_id=args.load_balancer.security_group.id,
            ip_protocol="tcp",
            from_port=args.port,
            to_port=args.port,
            opts=self._child,
        )
        aws.vpc.SecurityGroupEgressRule(
            f"{self._name}-from-balancer-egress",
            description="Tasks alone",
            security_group_id=args.load_balancer.security_group.id,
            referenced_security_group_id=group.id,
            ip_protocol="tcp",
            from_port=args.port,
            to_port=args.port,
            opts=self._child,
        )
        for port, purpose in ((HTTPS_PORT, "AWS, embeddings and the index"), (MONGODB_PORT, "MongoDB")):
            aws.vpc.SecurityGroupEgressRule(
                f"{self._name}-to-{port}",
                description=purpose,
                security_group_id=group.id,
                cidr_ipv4=EVERYWHERE,
                ip_protocol="tcp",
                from_port=port,
                to_port=port,
                opts=self._child,
            )
        return group

    def _scale(self) -> None:
        args = self._args
        target = aws.appautoscaling.Target(
            f"{self._name}-scaling",
            service_namespace="ecs",
            resource_id=pulumi.Output.concat("service/", self.cluster.name, "/", self.service.name),
            scalable_dimension="ecs:service:DesiredCount",
            min_capacity=args.desired_tasks,
            max_capacity=args.max_tasks,
            opts=self._child,
        )
        aws.appautoscaling.Policy(
            f"{self._name}-scaling-cpu",
            name="cpu",
            policy_type="TargetTrackingScaling",
            service_namespace=target.service_namespace,
            resource_id=target.resource_id,
            scalable_dimension=target.scalable_dimension,
            target_tracking_scaling_policy_configuration=aws.appautoscaling.PolicyTargetTrackingScalingPolicyConfigurationArgs(
                predefined_metric_specification=aws.appautoscaling.PolicyTargetTrackingScalingPolicyConfigurationPredefinedMetricSpecificationArgs(
                    predefined_metric_type="ECSServiceAverageCPUUtilization"
                ),
                target_value=CPU_TARGET_PERCENT,
                scale_out_cooldown=SCALE_OUT_SECONDS,
                scale_in_cooldown=SCALE_IN_SECONDS,
            ),
            opts=self._child,
        )
