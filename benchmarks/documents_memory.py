"""Peak memory of the ingest consumer on the largest document it takes."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable

from benchmarks.documents_servers import document_servers
from benchmarks.harness import Row

CHILD = """
import json, random, resource, sys
from api_services.documents.messages import IngestDocument
from api_services.documents.repository import DocumentRepository
from api_services.documents.service import approve_document, upsert_document
from functions.ingest.handler import handler
from functions.platform import clients
from functions.platform.records import RecordContext
from api_services.sqs import SqsQueueSender

paragraphs, chance = [], random.Random(5)
size, wanted = 0, int(sys.argv[1])
while size < wanted - 1_000:
    if len(paragraphs) % 12 == 0:
        paragraphs.append(f"## Part {len(paragraphs)}")
        size += len(paragraphs[-1]) + 2
    paragraphs.append(" ".join(f"w{chance.randrange(5_000)}" for _ in range(chance.randint(40, 110))))
    size += len(paragraphs[-1]) + 2
collaborators = handler.connect()
documents = DocumentRepository(clients.mongo_database())
upsert_document(documents, document_id="large", title="Large", content="\\n\\n".join(paragraphs))
del paragraphs
approve_document(documents, SqsQueueSender({}, lambda: None), document_id="large")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
handler.setup.record_handler(
    collaborators, IngestDocument(document_id="large", version=1), RecordContext("m", 1, None, lambda: 880.0)
)
document = documents.get("large")
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
unit = 1 if sys.platform == "darwin" else 1024
found = {"peak": peak * unit, "before": before * unit, "chunks": document.chunks_total, "state": document.state}
print(json.dumps(found | {"bytes": document.content_bytes}))
"""


def run(quick: bool) -> Iterable[Row]:
    """The rows of `./sophia bench documents-memory`."""
    size = 200_000 if quick else 5 * 1024 * 1024
    with document_servers(0.0) as servers:
        began = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-c", CHILD, str(size)],
            env={**os.environ, **servers.environ(), "STAGE": "bench", "LOG_LEVEL": "WARNING"},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(f"the consumer ended with {done.returncode}: {done.stderr[-800:]}")
        found = json.loads(done.stdout.strip().splitlines()[-1])
        seconds = time.monotonic() - began
    if found["state"] != "indexed":
        raise RuntimeError(f"the document is {found['state']}")
    name = f"{found['bytes'] / 1024 / 1024:.1f} MB, {found['chunks']:,} passages"
    yield Row(name=f"peak memory, {name}", value=found["peak"] / 1024 / 1024, unit="MB", target=300)
    yield Row(name="of this before the document was read", value=found["before"] / 1024 / 1024, unit="MB")
    yield Row(name=f"time, {name}, a model without latency", value=seconds, unit="s")
