"""The load balancer of an HTTP service: public over TLS where there is a certificate, else for the VPC alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pulumi
import pulumi_aws as aws

HTTP_PORT: Final = 80
HTTPS_PORT: Final = 443
TLS_POLICY: Final = "ELBSecurityPolicy-TLS13-1-2-2021-06"
PRIVATE_RANGES: Final = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")
EVERYWHERE: Final = "0.0.0.0/0"
NAME_MAX: Final = 32
"""Characters of the name of a load balancer or a target group (ELB API CreateLoadBalancer)."""


@dataclass(frozen=True, kw_only=True)
class LoadBalancerArgs:
    physical_name: str
    vpc_id: pulumi.Input[str]
    subnet_ids: pulumi.Input[Sequence[str]]
    certificate_arn: str | None
    """Without one the load balancer is internal and speaks HTTP: keys never cross the internet in clear."""
    target_port: int
    health_path: str
    protect: bool


class LoadBalancer(pulumi.ComponentResource):
    """Load balancer, target group, listeners and the security group that targets admit. `url` is the service's."""

    def __init__(self, name: str, args: LoadBalancerArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("sophia:lb:LoadBalancer", name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        public = args.certificate_arn is not None
        self.security_group = aws.ec2.SecurityGroup(
            f"{name}-security-group",
            description="Clients of the load balancer",
            vpc_id=args.vpc_id,
            opts=child,
        )
        ports = (HTTP_PORT, HTTPS_PORT) if public else (HTTP_PORT,)
        for port in ports:
            for cidr in (EVERYWHERE,) if public else PRIVATE_RANGES:
                aws.vpc.SecurityGroupIngressRule(
                    f"{name}-from-{cidr.replace('/', '-')}-to-{port}",
                    description="Clients" if port == HTTPS_PORT or not public else "Clients, to be redirected to TLS",
                    security_group_id=self.security_group.id,
                    cidr_ipv4=cidr,
                    ip_protocol="tcp",
                    from_port=port,
                    to_port=port,
                    opts=child,
                )
        self.balancer = aws.lb.LoadBalancer(
            f"{name}-application",
            name=args.physical_name,
            load_balancer_type="application",
            internal=not public,
            security_groups=[self.security_group.id],
            subnets=args.subnet_ids,
            drop_invalid_header_fields=True,
            enable_deletion_protection=args.protect,
            opts=child,
        )
        self.target_group = aws.lb.TargetGroup(
            f"{name}-targets",
            name=args.physical_name,
            port=args.target_port,
            protocol="HTTP",
            target_type="ip",
            vpc_id=args.vpc_id,
            deregistration_delay=30,
            health_check=aws.lb.TargetGroupHealthCheckArgs(
                path=args.health_path, matcher="200", interval=15, timeout=5, healthy_threshold=2, unhealthy_threshold=3
            ),
            opts=child,
        )
        forward = aws.lb.ListenerDefaultActionArgs(type="forward", target_group_arn=self.target_group.arn)
        if args.certificate_arn is None:
            self.listener = aws.lb.Listener(
                f"{name}-http",
                load_balancer_arn=self.balancer.arn,
                port=HTTP_PORT,
                protocol="HTTP",
                default_actions=[forward],
                opts=child,
            )
        else:
            self.listener = aws.lb.Listener(
                f"{name}-https",
                load_balancer_arn=self.balancer.arn,
                port=HTTPS_PORT,
                protocol="HTTPS",
                ssl_policy=TLS_POLICY,
                certificate_arn=args.certificate_arn,
                default_actions=[forward],
                opts=child,
            )
            aws.lb.Listener(
                f"{name}-http",
                load_balancer_arn=self.balancer.arn,
                port=HTTP_PORT,
                protocol="HTTP",
                default_actions=[
                    aws.lb.ListenerDefaultActionArgs(
                        type="redirect",
                        redirect=aws.lb.ListenerDefaultActionRedirectArgs(
                            port=str(HTTPS_PORT), protocol="HTTPS", status_code="HTTP_301"
                        ),
                    )
                ],
                opts=child,
            )
        self.url = pulumi.Output.concat("https://" if public else "http://", self.balancer.dns_name)
        self.register_outputs({"url": self.url})
