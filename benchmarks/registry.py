"""The benchmarks of `./sophia bench`. Adding one is an entry here and a module with `run(quick) -> Iterable[Row]`."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BenchSpec:
    """A benchmark by name; its module is imported when it runs."""

    name: str
    module: str
    purpose: str


BENCHES: tuple[BenchSpec, ...] = (
    BenchSpec("wrapper", "benchmarks.wrapper", "the consumer wrapper's time per record, over validating alone"),
    BenchSpec("imports", "benchmarks.imports", "import time of each handler from its built zip"),
    BenchSpec("memory", "benchmarks.memory", "peak memory of each handler's process after a batch"),
    BenchSpec("documents", "benchmarks.documents", "calls side by side, the index's writer, search over 50,000 chunks"),
    BenchSpec("documents-memory", "benchmarks.documents_memory", "peak memory of the consumer on a 5 MB document"),
    BenchSpec("settlement", "benchmarks.settlement", "settlements a second by four consumers, over bare transactions"),
    BenchSpec("stage", "benchmarks.stage", "latency and throughput from queue to settlement on the local stage"),
)
