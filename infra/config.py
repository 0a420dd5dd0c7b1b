"""What a stage is, read once from `Pulumi.<stage>.yaml` and checked; the only reader of Pulumi's configuration."""

import ipaddress
import os
import platform
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast, get_args
from urllib.parse import urlsplit

import pulumi
from pydantic import SecretStr

from api_services import secrets
from api_services.http.settings import ApiSettings
from api_services.queues import QUEUES
from api_services.schedules import SCHEDULES
from api_services.secrets import SECRETS, SecretSpec
from api_services.settings import Settings
from api_services.stages import LOCAL_STAGE
from infra.config_reader import ConfigError, Reader
from infra.packaging import Architecture
from infra.rules.queues import CONCURRENCY
from toolchain.stage_files import config_name

HOST: Final = "host"
"""Value of `architecture` and `pythonVersion` on the local stage, whose functions run in this machine's Python."""

LOG_RETENTION_DAYS: Final = (
    1,
    3,
    5,
    7,
    14,
    30,
    60,
    90,
    120,
    150,
    180,
    365,
    400,
    545,
    731,
    1096,
    1827,
    2192,
    2557,
    3653,
)
"""What CloudWatch accepts (API PutRetentionPolicy)."""

PYTHON_VERSIONS: Final = ("3.11", "3.12", "3.13", "3.14")
FARGATE_MEMORY_MB: Final = {
    256: (512, 1024, 2048),
    512: range(1024, 4097, 1024),
    1024: range(2048, 8193, 1024),
    2048: range(4096, 16_385, 1024),
    4096: range(8192, 30_721, 1024),
}
"""By CPU units (ECS guide, task_definition_parameters, task size)."""

EXAMPLE_ACCOUNT: Final = "111122223333"
PROCESS_SETTINGS: Final = ("mongo_database", "stage", "log_level")
"""Settings that every process gets."""

EXAMPLE_DOMAINS: Final = ("example.com", "example.org", "example.net")

_STAGE = re.compile(r"^[a-z][a-z0-9]*(-[a-z0-9]+)*$")
_EMAIL = re.compile(r"^[^@\s]{1,64}@[a-z0-9-]+(\.[a-z0-9-]+)+$", re.IGNORECASE)
_PRINCIPAL = re.compile(r"^arn:aws[a-z-]*:iam::\d{12}:(root|(role|user)/[\w+=,.@/-]{1,128})$")
_CERTIFICATE = re.compile(r"^arn:aws[a-z-]*:acm:[a-z0-9-]+:\d{12}:certificate/[0-9a-f-]{36}$")


@dataclass(frozen=True, kw_only=True)
class NetworkConfig:
    """An existing VPC: the load balancer's subnets and the tasks' subnets, which may be the same."""

    vpc_id: str
    load_balancer_subnet_ids: tuple[str, ...]
    task_subnet_ids: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class ApiConfig:
    """The Fargate service."""

    image_tag: str | None
    """None: the repository of images alone, so that a first image can be pushed."""
    desired_tasks: int
    max_tasks: int
    cpu: int
    memory_mb: int
    certificate_arn: str | None
    """Without one the load balancer is internal: bearer keys never cross the internet in clear."""
    network: NetworkConfig | None
    """None: the default VPC of the account, whose subnets are public."""


@dataclass(frozen=True, kw_only=True)
class StageConfig:
    """Everything in which stages differ."""

    stage: str
    region: str
    architecture: Architecture
    python_version: str
    log_retention_days: int
    log_level: str
    mongo_database: str
    settings: Mapping[str, str]
    """Settings of functions and API by field name; absent ones keep their default."""
    secrets: tuple[SecretSpec, ...]
    """Those this stage uses: no Langfuse key where nothing is traced, no index token where the index is a file."""
    alarm_emails: tuple[str, ...]
    operator_principals: tuple[str, ...]
    """ARNs that may take the operator's role; without any, a tag on the principal decides."""
    max_concurrency: int
    """Bound on every consumer's own maximum: a small stage, or a small machine."""
    dashboard: bool
    customer_key: bool
    tracing: bool
    protect_stateful: bool
    lose_messages_of: tuple[str, ...]
    """Queues whose messages this deployment may destroy; named by whoever runs the command, never in a tracked file."""
    api: ApiConfig | None

    @property
    def is_local(self) -> bool:
        return self.stage == LOCAL_STAGE

    def protects(self, queue_name: str) -> bool:
        """Whether the engine must refuse to replace or delete this queue: on AWS, unless the command names it."""
        return not self.is_local and queue_name not in self.lose_messages_of


def read_stage_config(stage: str, values: Mapping[str, str], environ: Mapping[str, str]) -> StageConfig:
    """Build the configuration of `stage` from Pulumi's `values`; `ConfigError` names key, rule and the YAML to add."""
    if not _STAGE.fullmatch(stage):
        raise ConfigError(f"Stage '{stage}' is not a valid name: use lower-case words joined by hyphens, such as dev.")
    local = stage == LOCAL_STAGE
    check_endpoints(stage, values, environ)
    reader = Reader(stage, values)
    region = reader.text("aws:region", r"[a-z]{2}(-[a-z]+)+-\d", "an AWS region", example="eu-west-1")
    settings = _settings(reader, local=local)
    config = StageConfig(
        stage=stage,
        region=region,
        architecture=_architecture(reader, local=local),
        python_version=_python_version(reader, local=local),
        log_retention_days=reader.integer("logRetentionDays", allowed=LOG_RETENTION_DAYS, example=30),
        log_level=reader.choice("logLevel", ("DEBUG", "INFO", "WARNING", "ERROR"), default="INFO"),
        mongo_database=reader.text(
            "mongoDatabase", r"[A-Za-z][A-Za-z0-9_-]{0,37}", "a database name of up to 38 characters", default="sophia"
        ),
        settings=settings,
        secrets=tuple(_used_secrets(settings)),
        alarm_emails=_emails(reader, local=local),
        operator_principals=reader.texts(
            "operatorPrincipals",
            _PRINCIPAL.pattern,
            "ARNs of IAM roles, users or accounts",
            example="arn:aws:iam::111122223333:role/oncall",
        ),
        max_concurrency=reader.integer("maxConcurrency", allowed=CONCURRENCY, default=CONCURRENCY[-1]),
        dashboard=reader.flag("dashboard", default=not local),
        tracing=reader.flag("tracing", default=not local),
        customer_key=reader.flag("customerKey", default=not local),
        protect_stateful=reader.flag("protectStateful", default=not local),
        lose_messages_of=_lose_messages_of(reader),
        api=_api(reader, region) if reader.flag("deployApi", default=not local) else None,
    )
    reader.refuse_unknown()
    return config


def stage_config() -> StageConfig:
    """The configuration of the stack that runs now."""
    values = cast("Mapping[str, str]", pulumi.runtime.config.CONFIG.get())
    return read_stage_config(pulumi.get_stack(), values, os.environ)


def placeholders(config: StageConfig) -> list[str]:
    """Example values that a real stage must not keep, as sentences."""
    warnings = [
        f"sophia:alarmEmails still holds the example address {email}: stage {config.stage} notifies nobody of alarms."
        for email in config.alarm_emails
        if email.rsplit("@", 1)[1].lower() in EXAMPLE_DOMAINS
    ]
    examples = {
        "indexUrl": config.settings.get("index_url", "").endswith(EXAMPLE_DOMAINS),
        "certificateArn": config.api is not None and f":{EXAMPLE_ACCOUNT}:" in (config.api.certificate_arn or ""),
        "vpcId": config.api is not None
        and config.api.network is not None
        and set(config.api.network.vpc_id.removeprefix("vpc-")) == {"0"},
    }
    warnings += [
        f"sophia:{key} still holds the example of Pulumi.{config.stage}.yaml: the deployment will fail or not work."
        for key, is_example in examples.items()
        if is_example
    ]
    return warnings


def secret_names(model: type[Settings]) -> list[str]:
    """The fields of a settings model that are secrets."""
    return [name for name, field in model.model_fields.items() if SecretStr in _types(field.annotation)]


def setting_names(model: type[Settings]) -> list[str]:
    """The fields of a settings model that the stage configures: neither secret nor the same for every process."""
    return [name for name in model.model_fields if name not in (*secret_names(model), *PROCESS_SETTINGS)]


def _types(annotation: Any) -> tuple[Any, ...]:
    return get_args(annotation) or (annotation,)


def check_endpoints(stage: str, values: Mapping[str, str], environ: Mapping[str, str]) -> None:
    """Refuse the local stage anywhere but on loopback, and every other stage with an endpoint override."""
    overrides = {key: value for key, value in environ.items() if key.startswith("AWS_ENDPOINT_URL") and value}
    if stage != LOCAL_STAGE:
        if overrides:
            raise ConfigError(
                f"Stage '{stage}' is on AWS, but {min(overrides)} is set. Unset it, or use the stage '{LOCAL_STAGE}'."
            )
        if values.get("aws:endpoints"):
            raise ConfigError(f"Stage '{stage}' is on AWS, but aws:endpoints is configured. Remove it.")
        return
    if "AWS_ENDPOINT_URL" not in overrides:
        raise ConfigError("Stage 'local' needs the emulator, but AWS_ENDPOINT_URL is not set. Run `./sophia up`.")
    for key, value in sorted(overrides.items()):
        if not _is_loopback(value):
            raise ConfigError(
                f"Stage 'local' may only reach this machine, but {key} is {value}. Unset it and run `./sophia up`."
            )


def _is_loopback(url: str) -> bool:
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return False
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _architecture(reader: Reader, *, local: bool) -> Architecture:
    value = reader.choice("architecture", ("x86_64", "arm64", HOST) if local else ("x86_64", "arm64"), default="arm64")
    if value == HOST:
        value = "arm64" if platform.machine().lower() in ("arm64", "aarch64") else "x86_64"
    return cast("Architecture", value)


def _python_version(reader: Reader, *, local: bool) -> str:
    value = reader.choice("pythonVersion", (*PYTHON_VERSIONS, HOST) if local else PYTHON_VERSIONS, default="3.13")
    return f"{sys.version_info.major}.{sys.version_info.minor}" if value == HOST else value


def _settings(reader: Reader, *, local: bool) -> dict[str, str]:
    names = {name for spec in (*QUEUES, *SCHEDULES) for name in spec.settings} | set(setting_names(ApiSettings))
    values: dict[str, str] = {}
    for name in sorted(names):
        key = config_name(name)
        rule = (r"\S{1,2048}", "a URL") if name.endswith("_url") else (r"\S{1,256}", "one word")
        value = reader.optional_text(key, *rule)
        if value is not None:
            values[name] = value
    if "langfuse_public_key" in values and "langfuse_base_url" not in values:
        raise reader.error(
            "langfuseBaseUrl",
            "is missing while sophia:langfusePublicKey is set; traces would go to another region unseen",
            "https://cloud.langfuse.com",
        )
    if not local and values.get("index_url", "file:").startswith("file:"):
        raise reader.error(
            "indexUrl", "must be the URL of a Turso database: functions share no file", "libsql://sophia.turso.example"
        )
    return values


def _used_secrets(settings: Mapping[str, str]) -> Iterable[SecretSpec]:
    index_is_file = settings.get("index_url", "file:").startswith("file:")
    unused: set[SecretSpec] = set()
    if "langfuse_public_key" not in settings:
        unused.add(secrets.LANGFUSE_SECRET_KEY)
    if index_is_file:
        unused.add(secrets.TURSO_AUTH_TOKEN)
    return (spec for spec in SECRETS if spec not in unused)


def _emails(reader: Reader, *, local: bool) -> tuple[str, ...]:
    emails = reader.texts("alarmEmails", _EMAIL.pattern, "e-mail addresses", example="oncall@sophia.example")
    if not emails and not local:
        raise reader.error("alarmEmails", "names nobody, so no alarm would reach anyone", ["oncall@sophia.example"])
    return emails


def _lose_messages_of(reader: Reader) -> tuple[str, ...]:
    known = [spec.name for spec in QUEUES] + [spec.name for spec in SCHEDULES]
    names = reader.texts("loseMessagesOf", r".*", "names of queues", example=known[0])
    for name in names:
        if name not in known:
            raise reader.error("loseMessagesOf", f"names '{name}'; there are {', '.join(known)}", [known[0]])
    return names


def _api(reader: Reader, region: str) -> ApiConfig:
    desired = reader.integer("apiDesiredTasks", allowed=range(1, 101), default=2)
    most = reader.integer("apiMaxTasks", allowed=range(1, 101), default=10)
    if most < desired:
        raise reader.error("apiMaxTasks", f"is {most}, below sophia:apiDesiredTasks, which is {desired}", desired)
    cpu = reader.integer("apiCpu", allowed=tuple(FARGATE_MEMORY_MB), default=512)
    certificate = reader.optional_text("certificateArn", _CERTIFICATE.pattern, "the ARN of an ACM certificate")
    if certificate is not None and certificate.split(":")[3] != region:
        raise reader.error(
            "certificateArn", f"must be of the region {region}, got {certificate}", "<a certificate there>"
        )
    return ApiConfig(
        image_tag=reader.optional_text("apiImageTag", r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}", "an image tag"),
        desired_tasks=desired,
        max_tasks=most,
        cpu=cpu,
        memory_mb=reader.integer("apiMemoryMb", allowed=FARGATE_MEMORY_MB[cpu], default=2 * cpu),
        certificate_arn=certificate,
        network=_network(reader),
    )


def _network(reader: Reader) -> NetworkConfig | None:
    vpc_id = reader.optional_text("vpcId", r"vpc-[0-9a-f]{8,17}", "the id of a VPC")
    subnet = (r"subnet-[0-9a-f]{8,17}", "ids of subnets")
    balancer = reader.texts("loadBalancerSubnetIds", *subnet, example="subnet-0a1b2c3d")
    tasks = reader.texts("taskSubnetIds", *subnet, example="subnet-0a1b2c3d")
    if vpc_id is None:
        if balancer or tasks:
            raise reader.error("vpcId", "is missing while subnets are named", "vpc-0a1b2c3d")
        return None
    for key, ids in (("loadBalancerSubnetIds", balancer), ("taskSubnetIds", tasks)):
        if len(ids) < 2:
            raise reader.error(key, f"needs subnets in two availability zones, got {len(ids)}", ["subnet-0a1b2c3d"])
    return NetworkConfig(vpc_id=vpc_id, load_balancer_subnet_ids=balancer, task_subnet_ids=tasks)
