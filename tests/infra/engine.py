"""Runs the program under Pulumi mocks and records everything it declares."""

import asyncio
import runpy
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pulumi
import yaml
from pulumi.runtime import mocks
from pulumi.runtime.stack import run_in_stack

from infra import functions
from infra.config import StageConfig
from infra.config_reader import as_values
from infra.packaging import FunctionPackage

ROOT = Path(__file__).resolve().parents[2]
ACCOUNT = "123456789012"
REGION = "eu-west-1"


@dataclass
class Recorded:
    """One resource as the engine was asked for it; inputs are resolved and in Pulumi's own spelling."""

    type: str
    name: str
    inputs: dict[str, Any]


@dataclass
class Engine(pulumi.runtime.Mocks):
    """Answers every registration with plausible identifiers, and remembers it."""

    resources: list[Recorded] = field(default_factory=list[Recorded])
    calls: list[str] = field(default_factory=list[str])
    outputs: dict[str, Any] = field(default_factory=dict[str, Any])

    def new_resource(self, args: pulumi.runtime.MockResourceArgs) -> tuple[str | None, dict[Any, Any]]:
        inputs = cast("dict[str, Any]", args.inputs)
        self.resources.append(Recorded(args.typ, args.name, inputs))
        state = dict(inputs)
        name: str = state.setdefault("name", args.name)
        service = args.typ.split(":")[1].split("/")[0]
        state["arn"] = f"arn:aws:{service}:{REGION}:{ACCOUNT}:{name}"
        state["repositoryUrl"] = f"{ACCOUNT}.dkr.ecr.{REGION}.amazonaws.com/{name}"
        state["uuid"] = "11111111-2222-3333-4444-555555555555"
        state["dnsName"] = f"{name}.{REGION}.elb.amazonaws.com"
        state["arnSuffix"] = f"app/{name}/0123456789abcdef"
        identifier = f"{args.name}-id"
        if args.typ == "aws:sqs/queue:Queue":
            identifier = state["url"] = f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT}/{name}"
        return identifier, state

    def call(self, args: pulumi.runtime.MockCallArgs) -> Any:
        self.calls.append(args.token)
        return {
            "accountId": ACCOUNT,
            "id": "vpc-0123456789abcdef0",
            "ids": ["subnet-0aaaaaaaaaaaaaaaa", "subnet-0bbbbbbbbbbbbbbbb"],
        }

    def of(self, kind: str) -> list[Recorded]:
        """The resources of one type, such as `aws:sqs/queue:Queue`."""
        return [resource for resource in self.resources if resource.type == kind]


class Monitor(mocks.MockMonitor):
    """A mock monitor that keeps the stack's outputs."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self._engine = engine

    def RegisterResourceOutputs(self, request: Any) -> Any:  # noqa: N802  (a gRPC method)
        if "pulumi:pulumi:Stack" in request.urn:
            self._engine.outputs = pulumi.runtime.rpc.deserialize_properties(request.outputs)
        return super().RegisterResourceOutputs(request)


def stage_values(stage: str, **changes: Any) -> dict[str, str]:
    """The tracked configuration of a stage, as Pulumi hands it over; a change to None removes the key."""
    section: dict[str, Any] = yaml.safe_load((ROOT / f"Pulumi.{stage}.yaml").read_text())["config"]
    section |= {key if ":" in key else f"sophia:{key}": value for key, value in changes.items()}
    return as_values({key: value for key, value in section.items() if value is not None})


def run_program(stage: str, values: Mapping[str, str] | None = None) -> Engine:
    """Run `__main__.py` for `stage`. Returns after every registration has landed; raises what the program raises."""
    engine = Engine()
    asyncio.set_event_loop(loop := asyncio.new_event_loop())
    try:
        pulumi.runtime.set_all_config(dict(values if values is not None else stage_values(stage)))
        mocks.set_mocks(engine, project="sophia", stack=stage, monitor=Monitor(engine))
        pulumi.runtime.settings.set_root_resource(None)  # pyright: ignore[reportArgumentType]  (mocks make one)
        loop.run_until_complete(run_in_stack(run_main))
    finally:
        loop.close()
        asyncio.set_event_loop(None)
    return engine


def run_main() -> None:
    runpy.run_path(str(ROOT / "__main__.py"), run_name="__main__")


def fake_package(handler: str, config: StageConfig) -> FunctionPackage:
    """A package that was not built: the program needs its path and its record."""
    return FunctionPackage(
        path=ROOT / "nowhere" / f"{handler.split('.')[1]}.zip",
        sha256="0" * 64,
        size_bytes=1,
        unzipped_bytes=1,
        file_count=1,
        architecture=config.architecture,
        python_version=config.python_version,
        has_bytecode=False,
    )


__all__ = ["Engine", "Recorded", "fake_package", "functions", "run_program", "stage_values"]
