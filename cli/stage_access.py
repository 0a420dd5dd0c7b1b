"""A stage as an operator reaches it: its stack outputs and its AWS clients, the local stage and AWS ones alike."""

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from api_services.errors import ConfigurationError, DependencyError
from api_services.stages import LOCAL_STAGE

if TYPE_CHECKING:
    import boto3
    from types_boto3_cloudwatch import CloudWatchClient
    from types_boto3_lambda import LambdaClient
    from types_boto3_logs import CloudWatchLogsClient
    from types_boto3_secretsmanager import SecretsManagerClient
    from types_boto3_sns import SNSClient
    from types_boto3_sqs import SQSClient

LOCAL: Final = LOCAL_STAGE
_ENDPOINT_VARIABLES: Final = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_SQS", "AWS_ENDPOINT_URL_SECRETS_MANAGER")

StageOption = Annotated[
    str, typer.Option("--stage", "-s", help="The stage to work on; prod only when it is named.", show_default=True)
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
ExecuteOption = Annotated[bool, typer.Option("--execute", help="Do it; without this only the plan is printed.")]


@dataclass(frozen=True)
class StageAccess:
    """One stage; clients are made when first asked for."""

    stage: str
    outputs: Mapping[str, Any]
    session: "boto3.Session"
    endpoint_url: str | None = None
    _clients: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def sqs(self) -> "SQSClient":
        return self._client("sqs")

    @property
    def lambda_(self) -> "LambdaClient":
        return self._client("lambda")

    @property
    def logs(self) -> "CloudWatchLogsClient":
        return self._client("logs")

    @property
    def cloudwatch(self) -> "CloudWatchClient":
        return self._client("cloudwatch")

    @property
    def secretsmanager(self) -> "SecretsManagerClient":
        return self._client("secretsmanager")

    @property
    def sns(self) -> "SNSClient":
        return self._client("sns")

    def _client(self, service: Any) -> Any:
        if service not in self._clients:
            self._clients[service] = self.session.client(service, endpoint_url=self.endpoint_url)
        return self._clients[service]


def open_stage(stage: str) -> StageAccess:
    """Reach a stage: the local one as it runs, another with the caller's own AWS credentials and Pulumi backend.

    Raises `ConfigurationError` for an unknown stage, a local stage that is not up, and an AWS stage while an endpoint
    override is set; `DependencyError` where Pulumi gives no outputs.
    """
    from toolchain.paths import ROOT
    from toolchain.stage_files import check_stage

    check_stage(ROOT, stage)
    return _open_local() if stage == LOCAL else _open_deployed(stage)


def _open_local() -> StageAccess:
    import boto3

    from local.emulator import CREDENTIALS, REGION
    from local.stage import LocalStage

    running = LocalStage().running()
    session = boto3.Session(
        aws_access_key_id=CREDENTIALS["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=CREDENTIALS["AWS_SECRET_ACCESS_KEY"],
        region_name=REGION,
    )
    outputs = {**running.outputs, "apiUrl": running.api_url}
    return StageAccess(LOCAL, outputs, session, running.endpoint_url)


def _open_deployed(stage: str) -> StageAccess:
    import boto3

    from toolchain.paths import ROOT
    from toolchain.stage_files import read_stage_file

    overridden = [name for name in _ENDPOINT_VARIABLES if os.environ.get(name)]
    if overridden:
        raise ConfigurationError(
            f"{overridden[0]} is set, so stage {stage} would not be reached; unset it", code="endpoint_override"
        )
    region = read_stage_file(ROOT / f"Pulumi.{stage}.yaml")["config"].get("aws:region")
    return StageAccess(stage, _deployed_outputs(stage), boto3.Session(region_name=region))


def _deployed_outputs(stage: str) -> dict[str, Any]:
    from toolchain.paths import ROOT
    from toolchain.progress import Progress
    from toolchain.pulumi_cli import environment_with, find_or_obtain
    from toolchain.pulumi_output import one_line

    cli = find_or_obtain(os.environ, Progress().note)
    done = subprocess.run(  # noqa: S603
        [str(cli.path), "stack", "output", "--json", "--stack", stage, "--non-interactive"],
        cwd=ROOT,
        env=environment_with(cli, os.environ),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise DependencyError(
            f"Pulumi gave no outputs of stage {stage} ({one_line(done.stderr)}); log in to its backend and deploy it",
            code="stack_outputs",
        )
    return json.loads(done.stdout)
