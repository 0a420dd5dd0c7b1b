"""A Lambda function with its execution role, its log group and nothing that the role does not use."""

from dataclasses import dataclass
from typing import Final

import pulumi
import pulumi_aws as aws

from infra.access import Access
from infra.packaging import Architecture, FunctionPackage
from infra.policy_documents import policy_document, trust_policy

NAME_MAX: Final = 64
"""Characters of the name of a function, a role or a schedule (Lambda CreateFunction, IAM quotas, CreateSchedule)."""

TRACE_ACTIONS: Final = ("xray:PutTelemetryRecords", "xray:PutTraceSegments")
LOG_ACTIONS: Final = ("logs:CreateLogStream", "logs:PutLogEvents")


@dataclass(frozen=True, kw_only=True)
class LambdaFunctionArgs:
    physical_name: str
    handler: str
    package: FunctionPackage
    access: Access
    architecture: Architecture
    python_version: str
    timeout_seconds: int
    memory_mb: int
    log_retention_days: int
    key_arn: pulumi.Input[str] | None
    """Customer key of the log group; none leaves CloudWatch's own."""
    tracing: bool
    """Let Lambda itself record each invocation in X-Ray; the code knows nothing of it."""
    dead_letter_arn: pulumi.Input[str] | None = None
    """Queue for events that fail every retry; only for functions that are called asynchronously."""


class LambdaFunction(pulumi.ComponentResource):
    """One function. `function.name` and `function.arn` are what callers need."""

    def __init__(self, name: str, args: LambdaFunctionArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        package = args.package
        facts = {"packageArchitecture": package.architecture, "packagePythonVersion": package.python_version}
        super().__init__("sophia:lambda:Function", name, facts, opts)
        child = pulumi.ResourceOptions(parent=self)
        self.log_group = aws.cloudwatch.LogGroup(
            f"{name}-logs",
            name=f"/aws/lambda/{args.physical_name}",
            retention_in_days=args.log_retention_days,
            kms_key_id=args.key_arn,
            opts=child,
        )
        self.role = aws.iam.Role(
            f"{name}-role",
            name=args.physical_name,
            assume_role_policy=trust_policy("lambda.amazonaws.com"),
            opts=child,
        )
        args.access.allow("Log", LOG_ACTIONS, pulumi.Output.concat(self.log_group.arn, ":*"))
        if args.tracing:
            args.access.allow("Trace", TRACE_ACTIONS, "*")
        self.policy = aws.iam.RolePolicy(
            f"{name}-policy",
            name="declared-use",
            role=self.role.id,
            policy=policy_document(args.access.statements),
            opts=child,
        )
        self.function = aws.lambda_.Function(
            f"{name}-function",
            name=args.physical_name,
            role=self.role.arn,
            code=pulumi.FileArchive(str(package.path)),
            handler=args.handler,
            runtime=f"python{args.python_version}",
            architectures=[args.architecture],
            timeout=args.timeout_seconds,
            memory_size=args.memory_mb,
            environment=aws.lambda_.FunctionEnvironmentArgs(variables=args.access.environment),
            tracing_config=aws.lambda_.FunctionTracingConfigArgs(mode="Active") if args.tracing else None,
            dead_letter_config=None
            if args.dead_letter_arn is None
            else aws.lambda_.FunctionDeadLetterConfigArgs(target_arn=args.dead_letter_arn),
            # The role's policy and the log group must be there first, or Lambda refuses or makes a group of its own.
            opts=pulumi.ResourceOptions(parent=self, depends_on=[self.policy, self.log_group]),
        )
        # Policy packs see of a component what it registers as outputs.
        self.register_outputs({"arn": self.function.arn, **facts})
