"""The role of an operator: what the commands on queues, dead messages and logs call, on this stage's alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import pulumi
import pulumi_aws as aws

from infra.access import Access
from infra.components.lambda_function import LambdaFunction
from infra.policy_documents import policy_document

OPERATOR_TAG: Final = "sophia-operator"
SESSION_SECONDS: Final = 3600
READ_QUEUE: Final = ("sqs:GetQueueAttributes", "sqs:GetQueueUrl")
WORK_ON_DEAD_LETTERS: Final = (
    "sqs:CancelMessageMoveTask",
    "sqs:ChangeMessageVisibility",
    "sqs:DeleteMessage",
    "sqs:ListDeadLetterSourceQueues",
    "sqs:ListMessageMoveTasks",
    "sqs:PurgeQueue",
    "sqs:ReceiveMessage",
    "sqs:SendMessage",
    "sqs:StartMessageMoveTask",
)


@dataclass(frozen=True, kw_only=True)
class OperatorRoleArgs:
    physical_name: str
    stage: str
    region: str
    principals: Sequence[str]
    """ARNs that may take the role; without any, whoever in the account is tagged `sophia-operator` with the stage."""
    access: Access
    """What the role may do beside the queues."""
    queues: Sequence[aws.sqs.Queue]
    dlqs: Sequence[aws.sqs.Queue]
    mappings: Sequence[aws.lambda_.EventSourceMapping]
    functions: Sequence[LambdaFunction]
    jobs: Sequence[LambdaFunction]
    """Functions that an operator may call, such as the reconcilers."""
    alarm_names: Sequence[str]


class OperatorRole(pulumi.ComponentResource):
    """May list, show, move, delete and purge dead messages, pause and resume consumers, read their logs and alarms."""

    def __init__(self, name: str, args: OperatorRoleArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("sophia:iam:OperatorRole", name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        account = args.dlqs[0].arn.apply(lambda arn: arn.split(":")[4])
        self.role = aws.iam.Role(
            f"{name}-role",
            name=args.physical_name,
            description="Looks after queues and dead letters; changes no deployment",
            max_session_duration=SESSION_SECONDS,
            assume_role_policy=policy_document([_trust(args, account)]),
            opts=child,
        )
        access = args.access
        access.allow("ReadQueues", READ_QUEUE, *(queue.arn for queue in (*args.queues, *args.dlqs)))
        access.allow("WorkOnDeadLetters", WORK_ON_DEAD_LETTERS, *(queue.arn for queue in args.dlqs))
        access.allow("SendBack", ["sqs:SendMessage"], *(queue.arn for queue in args.queues))
        access.allow(
            "PauseAndResume",
            ["lambda:GetEventSourceMapping", "lambda:UpdateEventSourceMapping"],
            *(
                pulumi.Output.concat(f"arn:aws:lambda:{args.region}:", account, ":event-source-mapping:", mapping.uuid)
                for mapping in args.mappings
            ),
        )
        access.allow(
            "ReadFunctions",
            ["lambda:GetFunctionConfiguration"],
            *(function.function.arn for function in args.functions),
        )
        access.allow("RunJobs", ["lambda:InvokeFunction"], *(job.function.arn for job in args.jobs))
        access.allow(
            "ReadLogs",
            ["logs:FilterLogEvents", "logs:GetLogEvents", "logs:StartQuery"],
            *(pulumi.Output.concat(function.log_group.arn, ":*") for function in args.functions),
        )
        access.allow(
            "ReadAlarms",
            ["cloudwatch:DescribeAlarms"],
            *(
                pulumi.Output.concat(f"arn:aws:cloudwatch:{args.region}:", account, f":alarm:{alarm}")
                for alarm in args.alarm_names
            ),
        )
        aws.iam.RolePolicy(
            f"{name}-policy",
            name="declared-use",
            role=self.role.id,
            policy=policy_document(access.statements),
            opts=child,
        )
        self.arn = self.role.arn
        self.register_outputs({"arn": self.arn})


def _trust(args: OperatorRoleArgs, account: pulumi.Output[str]) -> dict[str, Any]:
    statement: dict[str, Any] = {"Effect": "Allow", "Action": "sts:AssumeRole"}
    if args.principals:
        return {**statement, "Principal": {"AWS": list(args.principals)}}
    return {
        **statement,
        "Principal": {"AWS": pulumi.Output.concat("arn:aws:iam::", account, ":root")},
        "Condition": {"StringEquals": {f"aws:PrincipalTag/{OPERATOR_TAG}": args.stage}},
    }
