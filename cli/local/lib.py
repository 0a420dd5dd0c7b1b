"""What the local stage looks like now."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from rich.table import Table

from api_services.queues import QUEUES
from local import clients, services
from local.run_state import read_run_state
from local.running import RunningStage
from local.stage import LocalStage

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient


@dataclass(frozen=True, slots=True)
class ServiceStatus:
    name: str
    running: bool
    pid: int | None
    port: int | None
    log: str


@dataclass(frozen=True, slots=True)
class QueueStatus:
    """Approximate counts, as SQS gives them."""

    name: str
    waiting: int
    in_flight: int
    dead_letters: int
    url: str


@dataclass(frozen=True, slots=True)
class StageStatus:
    """Queues and outputs are empty while the stage is not up."""

    up: bool
    services: list[ServiceStatus]
    queues: list[QueueStatus]
    outputs: dict[str, str]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def describe(running: RunningStage) -> dict[str, Any]:
    """Addresses and outputs for `up --json`; no key."""
    return {
        "apiUrl": running.api_url,
        "llmUrl": running.llm_url,
        "awsEndpointUrl": running.endpoint_url,
        "mongoUri": running.mongo_uri,
        "outputs": dict(running.outputs),
    }


def read_status(stage: LocalStage) -> StageStatus:
    """The recorded services as they are, and the queues' depths when the stage is up."""
    state = read_run_state(stage.paths)
    found = [
        ServiceStatus(
            name=name,
            running=stage.is_running(state, name),
            pid=state.services[name].pid if stage.is_running(state, name) else None,
            port=state.services[name].port if name in state.services else None,
            log=str(stage.paths.log_path(name)),
        )
        for name in services.SERVICES
    ]
    up = all(service.running for service in found) and state.deployed_to == state.services[services.EMULATOR]
    running = stage.running() if up else None
    return StageStatus(
        up=up,
        services=found,
        queues=list(_queues(running)) if running is not None else [],
        outputs=dict(state.outputs) if up else {},
    )


def _queues(running: RunningStage) -> Iterator[QueueStatus]:
    client = clients.sqs(running.endpoint_url)
    for spec in QUEUES:
        url = running.outputs[spec.output]
        waiting, in_flight = _depth(client, url)
        dead, _ = _depth(client, running.outputs[spec.dlq_output])
        yield QueueStatus(spec.name, waiting, in_flight, dead, url)


def _depth(client: "SQSClient", url: str) -> tuple[int, int]:
    attributes = client.get_queue_attributes(
        QueueUrl=url, AttributeNames=["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    ).get("Attributes", {})
    return (
        int(attributes.get("ApproximateNumberOfMessages", "0")),
        int(attributes.get("ApproximateNumberOfMessagesNotVisible", "0")),
    )


def status_tables(found: StageStatus) -> Iterator[Table]:
    """The status as tables for a person."""
    table = Table(title=f"local stage: {'up' if found.up else 'not up (./sophia up starts it)'}", title_justify="left")
    for column in ("service", "state", "pid", "port", "log"):
        table.add_column(column, overflow="fold")
    for service in found.services:
        state = "[green]running[/green]" if service.running else "[dim]stopped[/dim]"
        table.add_row(service.name, state, str(service.pid or ""), str(service.port or ""), service.log)
    yield table
    if not found.up:
        return
    table = Table(title="queues", title_justify="left")
    for column in ("queue", "waiting", "in flight", "dead messages"):
        table.add_column(column, justify="left" if column == "queue" else "right")
    for queue in found.queues:
        dead = f"[red]{queue.dead_letters}[/red]" if queue.dead_letters else "0"
        table.add_row(queue.name, str(queue.waiting), str(queue.in_flight), dead)
    yield table
    table = Table(title="outputs", title_justify="left")
    table.add_column("output")
    table.add_column("value", overflow="fold")
    for name, value in sorted(found.outputs.items()):
        table.add_row(name, value)
    yield table
