"""MongoDB and a slow language model for the benchmarks of documents."""

import os
import sys
import tempfile
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from local.mongod import start_mongod
from toolchain import processes


@dataclass(frozen=True, slots=True)
class DocumentServers:
    """Where they are, and a folder for the index."""

    mongo_uri: str
    llm_url: str
    home: Path

    def environ(self) -> dict[str, str]:
        """What the ingest consumer reads."""
        return {
            "MONGO_URI": self.mongo_uri,
            "MONGO_DATABASE": "bench",
            "OPENAI_API_KEY": "bench",
            "OPENAI_BASE_URL": f"{self.llm_url}/v1",
            "INDEX_URL": f"file:{self.home / 'index.db'}",
        }


@contextmanager
def document_servers(latency_seconds: float) -> Generator[DocumentServers]:
    """Started for the context, ended with it."""
    with tempfile.TemporaryDirectory(prefix="sophia-bench-") as folder:
        home = Path(folder)
        port = processes.free_port()
        mongod = start_mongod(home / "data", home / "mongod.log", dies_with_parent=True, throwaway=True)
        llm = processes.start(
            [sys.executable, "-m", "local.llm", "--port", str(port)],
            log_path=home / "llm.log",
            environ=_plain_environ(),
            dies_with_parent=True,
        )
        url = f"http://{processes.LOOPBACK}:{port}"
        try:
            processes.wait_until_ready(
                "the language model", llm, lambda: _answers(url), log_path=home / "llm.log", timeout_seconds=60
            )
            _post(f"{url}/_control/latency", f'{{"seconds": {latency_seconds}}}')
            yield DocumentServers(mongod.uri, url, home)
        finally:
            processes.stop_child(llm, at_once=True)
            mongod.stop()


def _plain_environ() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "AWS_", "LANGFUSE_"))}


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/healthz", timeout=2):  # noqa: S310
            return True
    except OSError:
        return False


def _post(url: str, body: str) -> None:
    with urllib.request.urlopen(urllib.request.Request(url, body.encode(), method="POST"), timeout=5):  # noqa: S310
        return
