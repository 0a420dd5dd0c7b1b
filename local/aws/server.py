"""The plugin as a process: one line on stdout, the port; the rest is gRPC."""

import logging
import os
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FrameType
from typing import Any, Final

import grpc
from pulumi.runtime.proto import provider_pb2_grpc

from local.aws.clients import POOL_SIZE
from local.aws.configuration import forget_credentials
from local.aws.provider import LocalAwsProvider

log = logging.getLogger(__name__)

LOG_VARIABLE: Final = "SOPHIA_AWS_LOG"
"""A file that gets the plugin's log; without it there is none."""

_STOP_SECONDS = 2.0
_PARENT_CHECK_SECONDS = 1.0
_OPTIONS: Final = (("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1))


def main() -> int:
    """Serve until the engine ends us or goes away."""
    parent = os.getppid()  # before the port is printed: whoever reads it may be gone a moment later
    environment = dict(os.environ)
    forget_credentials(os.environ)
    _log_to(environment.get(LOG_VARIABLE))
    stopped = threading.Event()

    def stop(_number: int, _frame: FrameType | None) -> None:
        stopped.set()

    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, stop)
    untyped: Any = grpc
    server: Any = untyped.server(ThreadPoolExecutor(POOL_SIZE), options=_OPTIONS)
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(LocalAwsProvider(environment), server)
    port: int = server.add_insecure_port("127.0.0.1:0")
    server.start()
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    while not stopped.wait(_PARENT_CHECK_SECONDS):
        if os.getppid() != parent:  # the engine was killed and could not end us
            break
    server.stop(_STOP_SECONDS).wait()
    log.info("left after %.2f s of CPU time", time.process_time())
    return 0


def _log_to(path: str | None) -> None:
    if path is None:
        logging.disable()
        return
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    logging.basicConfig(filename=path, level=logging.INFO, format="%(asctime)s %(process)d %(message)s")
