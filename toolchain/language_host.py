# ruff: noqa: ARG002, N802  (names and arguments are those of the gRPC service)
"""The Python language host for a Pulumi CLI that was built from its Go modules.

The SDK's own gRPC language runtime, which runs inline programs, is given the project's `__main__.py` as its program.
Where the official host is installed this one is not on PATH.
"""

import gc
import os
import runpy
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent import futures
from importlib.metadata import distributions, version
from pathlib import Path
from types import FrameType
from typing import Any

import grpc
from google.protobuf.empty_pb2 import Empty
from pulumi.automation._server import LanguageServer
from pulumi.runtime.proto import language_pb2, language_pb2_grpc, plugin_pb2

from toolchain.processes import LOOPBACK

_MAX_MESSAGE_BYTES = 400 * 1024 * 1024
"""What the official host and engine allow."""


class ProgramHost(LanguageServer):
    """Runs the `__main__.py` of the folder a request names; one program per process, as the engine does it."""

    def __init__(self) -> None:
        super().__init__(program=lambda: None)

    def Handshake(self, request: Any, context: grpc.ServicerContext) -> Any:
        return language_pb2.LanguageHandshakeResponse()

    def GetPluginInfo(self, request: Any, context: grpc.ServicerContext) -> Any:
        return plugin_pb2.PluginInfo(version=version("pulumi"))

    def InstallDependencies(self, request: Any, context: grpc.ServicerContext) -> Iterator[Any]:
        """Nothing to do: `./sophia` keeps `.venv` current."""
        return iter(())

    def RuntimeOptionsPrompts(self, request: Any, context: grpc.ServicerContext) -> Any:
        return language_pb2.RuntimeOptionsResponse()

    def GetProgramDependencies(self, request: Any, context: grpc.ServicerContext) -> Any:
        return language_pb2.GetProgramDependenciesResponse(
            dependencies=[
                language_pb2.DependencyInfo(name=found.name, version=found.version) for found in distributions()
            ]
        )

    def Cancel(self, request: Any, context: grpc.ServicerContext) -> Any:
        return Empty()

    def RunPlugin(self, request: Any, context: Any) -> Iterator[Any]:
        """A plugin written in Python, such as a policy pack: its output line by line, then its exit code."""
        folder: str = request.info.program_directory or request.program
        plugin = subprocess.Popen(  # noqa: S603
            [sys.executable, "-u", str(Path(folder) / "__main__.py"), *request.args],
            cwd=request.pwd or folder,
            env={**os.environ, **dict(pair.split("=", 1) for pair in request.env)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        context.add_callback(plugin.kill)
        with plugin:
            for line in plugin.stdout or ():
                yield language_pb2.RunPluginResponse(stdout=line)
        yield language_pb2.RunPluginResponse(exitcode=plugin.returncode)

    def Run(self, request: Any, context: Any) -> Any:
        folder: str = request.info.program_directory or str(Path.cwd())
        os.chdir(folder)
        sys.path.insert(0, folder)

        def program() -> None:
            runpy.run_path(str(Path(folder) / "__main__.py"), run_name="__main__")

        self.program = program
        response = super().Run(request, context)
        if response.error:
            # It is in the diagnostics already; returned again, it would be shown as "an unhandled error occurred".
            return language_pb2.RunResponse(bail=True)
        return response


def serve() -> None:
    """Print the port, then serve until the engine says to leave."""
    # A program makes thousands of classes and keeps them; looking for garbage among them takes a quarter of its time.
    gc.disable()
    server = grpc.server(
        futures.ThreadPoolExecutor(max_workers=4),
        options=[
            ("grpc.max_receive_message_length", _MAX_MESSAGE_BYTES),
            ("grpc.max_send_message_length", _MAX_MESSAGE_BYTES),
        ],
    )
    language_pb2_grpc.add_LanguageRuntimeServicer_to_server(ProgramHost(), server)
    port = server.add_insecure_port(f"{LOOPBACK}:0")
    server.start()

    def leave(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        server.stop(grace=None)

    signal.signal(signal.SIGINT, leave)
    signal.signal(signal.SIGTERM, leave)
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    server.wait_for_termination()
    # Taking apart what the program made would hold up the engine, which waits for this process.
    os._exit(0)


if __name__ == "__main__":
    serve()
