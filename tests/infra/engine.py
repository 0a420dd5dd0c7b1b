"""Runs the program under Pulumi mocks and records everything it declares."""

import asyncio
import os
import runpy
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

import pulumi
import yaml
from pulumi.runtime import mocks
from pulumi.runtime.stack import run_in_stack

from infra import functions
from infra.config import LOCAL_STAGE
from infra.config_reader import as_values
from infra.packaging import Architecture, FunctionPackage
from infra.rules.graph import Graph, Recorder

ROOT = Path(__file__).resolve().parents[2]
ACCOUNT = "123456789012"
REGION = "eu-west-1"


@dataclass
class Recorded:
    """One resource as the engine was asked for it; inputs are resolved and in Pulumi's own spelling."""

    type: str
    name: str
    inputs: dict[str, Any]
    parent: str = ""
    """`type::name` of the component it belongs to; empty at the top."""
    protect: bool = False
    aliases: list[str] = field(default_factory=list[str])


@dataclass
class Engine(pulumi.runtime.Mocks):
    """Answers every registration with plausible identifiers, and remembers it."""

    resources: list[Recorded] = field(default_factory=list[Recorded])
    calls: list[str] = field(default_factory=list[str])
    outputs: dict[str, Any] = field(default_factory=dict[str, Any])
    variables: dict[str, Any] = field(default_factory=dict[str, Any])

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

    def run_main(self) -> None:
        """Run the program; its variables stay readable."""
        self.variables = runpy.run_path(str(ROOT / "__main__.py"), run_name="__main__")

    @property
    def graph(self) -> Graph:
        """What the program itself saw before anything was registered."""
        recorder: Recorder = self.variables["declared"]
        return recorder.graph(self.variables["config"].stage)

    def of(self, kind: str) -> list[Recorded]:
        """The resources of one type, such as `aws:sqs/queue:Queue`."""
        return [resource for resource in self.resources if resource.type == kind]


class Monitor(mocks.MockMonitor):
    """A mock monitor that keeps the stack's outputs."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self._engine = engine

    def RegisterResource(self, request: Any) -> Any:  # noqa: N802  (a gRPC method)
        response = super().RegisterResource(request)
        for resource in reversed(self._engine.resources):
            if (resource.type, resource.name) == (request.type, request.name):
                resource.protect = request.protect
                resource.aliases = [alias.spec.name for alias in request.aliases]
                *_, types, name = request.parent.split("::")
                kind = types.split("$")[-1]
                resource.parent = "" if kind == "pulumi:pulumi:Stack" else f"{kind}::{name}"
                break
        return response

    def RegisterResourceOutputs(self, request: Any) -> Any:  # noqa: N802  (a gRPC method)
        if "pulumi:pulumi:Stack" in request.urn:
            self._engine.outputs = pulumi.runtime.rpc.deserialize_properties(request.outputs)
        return super().RegisterResourceOutputs(request)


def stage_values(stage: str, **changes: Any) -> dict[str, str]:
    """The tracked configuration of a stage, as Pulumi hands it over; a change to None removes the key."""
    section: dict[str, Any] = yaml.safe_load((ROOT / f"Pulumi.{stage}.yaml").read_text())["config"]
    section |= {key if ":" in key else f"sophia:{key}": value for key, value in changes.items()}
    return as_values({key: value for key, value in section.items() if value is not None})


def run_program(
    stage: str, values: Mapping[str, str] | None = None, environ: Mapping[str, str] | None = None
) -> Engine:
    """Run `__main__.py` for `stage`. Returns after every registration has landed; raises what the program raises.

    Packages are not built: their path and record are all the program needs.
    """
    engine = Engine()
    around = {"AWS_ENDPOINT_URL": "http://127.0.0.1:4566"} if stage == LOCAL_STAGE else dict[str, str]()
    asyncio.set_event_loop(loop := asyncio.new_event_loop())
    try:
        pulumi.runtime.set_all_config(dict(stage_values(stage) if values is None else values))
        mocks.set_mocks(engine, project="sophia", stack=stage, monitor=Monitor(engine))
        pulumi.runtime.settings.set_root_resource(None)  # pyright: ignore[reportArgumentType]  (mocks make one)
        with (
            patch.dict(os.environ, around if environ is None else environ, clear=True),
            patch.object(functions, "build_function", fake_build),
            patch.object(functions, "check_package", accept_package),
        ):
            loop.run_until_complete(run_in_stack(engine.run_main))
    finally:
        loop.close()
        asyncio.set_event_loop(None)
    return engine


def accept_package(_: Path, *, architecture: Architecture, python_version: str) -> None:
    """What was not built has no binaries to read."""


def fake_build(handler: str, *, architecture: Architecture, python_version: str, output_dir: Path) -> FunctionPackage:
    """A package that was not built."""
    return FunctionPackage(
        path=output_dir / f"{handler.split('.')[1]}.zip",
        sha256="0" * 64,
        size_bytes=1,
        unzipped_bytes=1,
        file_count=1,
        architecture=architecture,
        python_version=python_version,
        has_bytecode=False,
    )
