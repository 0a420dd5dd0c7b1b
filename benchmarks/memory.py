"""Peak memory of each handler's process, from its built zip, after one batch against a real MongoDB and emulator.

The batch names things that do not exist: each handler connects, reads, and sends its messages to the dead-letter queue.
"""

import json
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from api_services.messages import example
from api_services.queues import QUEUES, STANDALONE, QueueSpec
from benchmarks.harness import Row
from benchmarks.packages import Unpacked, run_isolated, unpacked
from benchmarks.wrapper import event_of
from local import clients
from local.emulator import Emulator, start_emulator
from local.mongod import start_mongod

TARGET: Final = 0.5
"""Of the function's memory: the rest is for the work itself, and Lambda's own share."""

# Linux counts the parent's memory at the fork into ru_maxrss; VmHWM begins anew with the program.
MEASURE: Final = """
import importlib, io, json
handler = importlib.import_module(sys.argv[2]).handler
out, sys.stdout = sys.stdout, io.StringIO()
handler(json.loads(sys.argv[3]), None)
sys.stdout = out
try:
    with open("/proc/self/status") as status:
        peak_kb = next(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))
except FileNotFoundError:
    import resource
    peak_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
print(json.dumps(peak_kb))
"""


def run(quick: bool) -> Iterable[Row]:
    """Megabytes of peak resident memory over what the function is given."""
    with (
        tempfile.TemporaryDirectory(prefix="sophia-bench-") as folder,
        unpacked(limit=1 if quick else None) as functions,
    ):
        home = Path(folder)
        mongod = start_mongod(home / "data", home / "mongod.log", dies_with_parent=True, throwaway=True)
        emulator = start_emulator(home / "work", home / "emulator.log", dies_with_parent=True)
        try:
            environ = _environ(mongod.uri, emulator, home)
            for function in functions:
                peak_kb = run_isolated(
                    MEASURE, function.folder, function.handler_module, json.dumps(_event(function)), environ=environ
                )
                yield Row(
                    name=function.module,
                    value=float(peak_kb) / 1024,
                    unit="MB",
                    floor=float(function.memory_mb),
                    floor_name="the function's memory",
                    target=TARGET,
                )
        finally:
            emulator.stop()
            mongod.stop()


def _environ(mongo_uri: str, emulator: Emulator, home: Path) -> dict[str, str]:
    client = clients.sqs(emulator.endpoint_url)
    environ = {
        **emulator.environ,
        "MONGO_URI": mongo_uri,
        "MONGO_DATABASE": "bench",
        "OPENAI_API_KEY": "bench",
        "OPENAI_BASE_URL": "http://127.0.0.1:9/v1",
        "INDEX_URL": f"file:{home / 'index.db'}",
        "STAGE": "local",
    }
    for spec in (*QUEUES, *STANDALONE):
        for key, name in (
            (spec.url_env_key, spec.physical_name("bench")),
            (spec.dlq_url_env_key, spec.dlq_physical_name("bench")),
        ):
            environ[key] = client.create_queue(QueueName=name)["QueueUrl"]
    return environ


def _event(function: Unpacked) -> Any:
    specs: dict[str, QueueSpec[Any]] = {spec.module: spec for spec in (*QUEUES, *STANDALONE)}
    spec = specs.get(function.module)
    if spec is None:
        return {}
    event = event_of(spec.batch_size)
    for record in event["Records"]:
        record["body"] = example(spec.messages[0]).body()
    return event
