"""The servers and consumers of a run: started, killed, started again, and all ended at the end."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from pydantic import SecretStr

from api_services.errors import AppError
from api_services.mongo import MongoDatabase, connect
from api_services.queues import INGEST, INTERVIEW_COMPLETED, REPORT_GENERATE, QueueSpec
from api_services.settings import MongoSettings
from local.emulator import REGION, Emulator, start_emulator
from local.mongod import Mongod, await_mongod, mongod_command, start_mongod
from toolchain import processes

if TYPE_CHECKING:
    from types_boto3_sqs.client import SQSClient

QUEUES: Final[tuple[QueueSpec[Any], ...]] = (INTERVIEW_COMPLETED, REPORT_GENERATE)
LEASE_SECONDS: Final = 8
"""How long a killed consumer hides its messages."""
FUNCTION_TIMEOUT_SECONDS: Final = {
    INTERVIEW_COMPLETED.name: 30,
    REPORT_GENERATE.name: 30,
    INGEST.name: INGEST.function_timeout_seconds,
}
"""Also how long the lease of a report lasts whose writer was killed."""
VISIBILITY_SECONDS: Final = 35
TRANSACTION_LIFETIME_SECONDS: Final = 5
"""How long the server keeps the transaction of a killed client; 60 by default."""
DATABASE: Final = "torture"


class Servers:
    """MongoDB, the emulator with its queues, the language model. As a context it ends every process."""

    def __init__(
        self,
        home: Path,
        consumers: Mapping[str, int],
        *,
        queues: tuple[QueueSpec[Any], ...] = QUEUES,
        consumer_module: str = "benchmarks.torture.consumer",
        settings: Mapping[str, str] | None = None,
        llm_latency_seconds: float = 0.0,
    ) -> None:
        self._home = home
        self._queues = queues
        self._consumer_module = consumer_module
        self._settings = dict(settings or {})
        self._llm_latency_seconds = llm_latency_seconds
        self._mongod_log = home / "mongod.log"
        self._mongod: Mongod | None = None
        self._emulator: Emulator | None = None
        self._llm: subprocess.Popen[bytes] | None = None
        self._llm_port = processes.free_port()
        self._slots = [queue for queue, count in consumers.items() for _ in range(count)]
        self._consumers: list[subprocess.Popen[bytes] | None] = [None] * len(self._slots)
        self._connected: MongoDatabase | None = None
        self.queue_urls: dict[str, str] = {}
        self.sqs: SQSClient

    def start(self) -> Self:
        """Start everything, or nothing."""
        try:
            self._start()
        except BaseException:
            self._stop()
            raise
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    @property
    def database(self) -> MongoDatabase:
        """One connection for the whole run; it survives MongoDB's deaths, as a consumer's does."""
        if self._connected is None:
            uri = self._running_mongod().uri
            self._connected = connect(MongoSettings(mongo_uri=SecretStr(uri), mongo_database=DATABASE))
        return self._connected

    def _start(self) -> None:
        self._mongod = start_mongod(self._home / "data", self._mongod_log, dies_with_parent=True)
        self._configure_mongod()
        self._emulator = start_emulator(self._home / "emulator", self._home / "emulator.log", dies_with_parent=True)
        self._llm = processes.start(
            [sys.executable, "-m", "local.llm", "--port", str(self._llm_port)],
            log_path=self._home / "llm.log",
            environ=self._environ(),
            dies_with_parent=True,
        )
        processes.wait_until_ready(
            "the language model",
            self._llm,
            self._llm_answers,
            log_path=self._home / "llm.log",
            timeout_seconds=60,
        )
        self.sqs = self._sqs_client()
        if self._llm_latency_seconds:
            self.llm("POST", "/_control/latency", {"seconds": self._llm_latency_seconds})
        for spec in self._queues:
            self._create_queue(spec)
        for number in range(len(self._slots)):
            self.start_consumer(number)

    def _configure_mongod(self) -> None:
        self.database.client.admin.command(
            {"setParameter": 1, "transactionLifetimeLimitSeconds": TRANSACTION_LIFETIME_SECONDS}
        )

    def kill_mongod(self, down_seconds: float) -> None:
        """SIGKILL, some time without a database, and the same data on the same port again."""
        mongod = self._running_mongod()
        mongod.process.send_signal(signal.SIGKILL)
        mongod.process.wait()
        time.sleep(down_seconds)
        process = processes.start(
            mongod_command(self._home / "data", mongod.port),
            log_path=self._mongod_log,
            environ=os.environ,
            dies_with_parent=True,
        )
        self._mongod = Mongod(mongod.uri, mongod.port, process, throwaway=False)
        await_mongod(self._mongod, self._mongod_log)
        self._configure_mongod()

    def start_consumer(self, number: int) -> None:
        queue = self._slots[number]
        self._consumers[number] = processes.start(
            [
                sys.executable,
                "-m",
                self._consumer_module,
                queue,
                "--function-timeout-seconds",
                str(FUNCTION_TIMEOUT_SECONDS[queue]),
                "--lease-seconds",
                str(LEASE_SECONDS),
            ],
            log_path=self._home / f"consumer-{number}-{queue}.log",
            environ=self._environ(),
            dies_with_parent=True,
        )

    def kill_consumer(self, number: int) -> None:
        """SIGKILL and a new process in its place."""
        consumer = self._consumers[number]
        if consumer is not None:
            consumer.send_signal(signal.SIGKILL)
            consumer.wait()
        self.start_consumer(number)

    def dead_consumers(self) -> list[str]:
        """Queues of consumers that ended without being killed by us."""
        return [
            queue
            for queue, process in zip(self._slots, self._consumers, strict=True)
            if process is not None and process.poll() is not None
        ]

    def depths(self) -> dict[str, int]:
        """Messages of each queue and dead-letter queue: waiting, in flight and delayed."""
        return {key: self._depth(url) for key, url in self.queue_urls.items()}

    def _depth(self, url: str) -> int:
        names: list[Any] = [
            "ApproximateNumberOfMessages",
            "ApproximateNumberOfMessagesNotVisible",
            "ApproximateNumberOfMessagesDelayed",
        ]
        attributes = self.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"]
        return sum(int(value) for value in attributes.values())

    def llm(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """One call of the language model's controls."""
        request = urllib.request.Request(
            f"http://{processes.LOOPBACK}:{self._llm_port}{path}",
            data=None if body is None else json.dumps(body).encode(),
            method=method,
        )
        with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310
            return json.loads(answer.read())

    def _llm_answers(self) -> bool:
        try:
            self.llm("GET", "/healthz")
        except OSError:
            return False
        return True

    def _create_queue(self, spec: QueueSpec[Any]) -> None:
        dlq = self.sqs.create_queue(QueueName=spec.dlq_physical_name("torture"))["QueueUrl"]
        arn = self.sqs.get_queue_attributes(QueueUrl=dlq, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        redrive = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": spec.max_receive_count})
        queue = self.sqs.create_queue(
            QueueName=spec.physical_name("torture"),
            Attributes={"VisibilityTimeout": str(VISIBILITY_SECONDS), "RedrivePolicy": redrive},
        )["QueueUrl"]
        self.queue_urls[spec.url_env_key] = queue
        self.queue_urls[spec.dlq_url_env_key] = dlq

    def _sqs_client(self) -> "SQSClient":
        from botocore.session import get_session

        emulator = self._running_emulator()
        client: Any = get_session().create_client(
            "sqs",
            region_name=REGION,
            endpoint_url=emulator.endpoint_url,
            aws_access_key_id=emulator.environ["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=emulator.environ["AWS_SECRET_ACCESS_KEY"],
        )
        return client

    def _environ(self) -> dict[str, str]:
        environ = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("AWS_", "LANGFUSE_", "OPENAI_", "PYTHONDONTWRITEBYTECODE"))
        }
        environ["PYTHONPYCACHEPREFIX"] = str(self._home / "pycache")
        if self._emulator is not None:
            environ |= self._emulator.environ
        return (
            environ
            | self.queue_urls
            | self._settings
            | {
                "MONGO_URI": self._running_mongod().uri,
                "MONGO_DATABASE": DATABASE,
                "OPENAI_API_KEY": "sk-torture",
                "OPENAI_BASE_URL": f"http://{processes.LOOPBACK}:{self._llm_port}/v1",
                "STAGE": "torture",
                "LOG_LEVEL": "WARNING",
            }
        )

    def _running_mongod(self) -> Mongod:
        if self._mongod is None:
            raise AppError("MongoDB is not started")
        return self._mongod

    def _running_emulator(self) -> Emulator:
        if self._emulator is None:
            raise AppError("The emulator is not started")
        return self._emulator

    def _stop(self) -> None:
        for process in [*self._consumers, self._llm]:
            if process is not None:
                processes.stop_child(process, at_once=True)
        if self._connected is not None:
            self._connected.client.close()
        if self._emulator is not None:
            self._emulator.stop()
        if self._mongod is not None:
            processes.stop_child(self._mongod.process, at_once=True)
