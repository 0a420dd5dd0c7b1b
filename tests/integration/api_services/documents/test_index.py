"""The index in a file and behind a server: generations, locks, outages, wrong addresses."""

import random
import subprocess
import sys
import threading
import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from pydantic import SecretStr

from api_services.documents.errors import (
    IndexAccessError,
    IndexBusyError,
    IndexMismatchError,
    IndexUnavailableError,
)
from api_services.documents.index import sql as index_sql
from api_services.documents.index.base import IndexedChunk
from api_services.documents.index.connect import index_driver, open_index
from api_services.documents.index.driver import IndexDriver, Row, Statement
from api_services.documents.index.http import LibsqlHttpDriver
from api_services.documents.index.libsql import LibsqlFileDriver
from api_services.documents.index.sql import LibsqlSearchIndex
from api_services.documents.settings import IndexSettings
from tests.support.hrana_server import HranaServer

pytestmark = pytest.mark.integration

DIMENSION = 64
TOKEN = "token-of-the-test"


def chunks(count: int, word: str) -> list[IndexedChunk]:
    return [
        IndexedChunk(
            number=number,
            content_hash=f"{word}{number}",
            heading="Heading",
            text=f"{word} text number{number}",
            title="Title",
            summary="Summary",
            keywords=("one", "two"),
            questions=("What?",),
            vector=vector(f"{word}{number}"),
        )
        for number in range(count)
    ]


def vector(seed: str) -> bytes:
    chance = random.Random(seed)  # noqa: S311
    return array("f", [chance.gauss(0, 1) for _ in range(DIMENSION)]).tobytes()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[HranaServer]:
    started = HranaServer(tmp_path / "server.db", token=TOKEN)
    yield started
    started.stop()


@pytest.fixture(params=["file", "server"])
def index(request: pytest.FixtureRequest, tmp_path: Path, server: HranaServer) -> Iterator[LibsqlSearchIndex]:
    on_file = request.param == "file"
    driver = LibsqlFileDriver(tmp_path / "index.db") if on_file else LibsqlHttpDriver(server.url, TOKEN)
    made = LibsqlSearchIndex(driver, model="model-a", dimension=DIMENSION)
    made.check()
    yield made
    made.close()


def put(index: LibsqlSearchIndex, document_id: str, count: int, word: str, revision: int) -> bool:
    return index.replace(
        document_id=document_id, title=document_id, version=revision, revision=revision, chunks=chunks(count, word)
    )


def rows(driver: IndexDriver, table: str) -> object:
    return driver.read([Statement(f"SELECT count(*) FROM {table}")])[0][0][0]  # noqa: S608


def driver_of(index: LibsqlSearchIndex) -> IndexDriver:
    return index._driver  # pyright: ignore[reportPrivateUsage]


def test_a_new_generation_leaves_no_row_of_the_old_one_in_any_table(index: LibsqlSearchIndex) -> None:
    assert put(index, "doc-3", 9, "old", 1)
    assert put(index, "doc-3", 4, "new", 2)
    assert {table: rows(driver_of(index), table) for table in ("chunks", "chunks_fts", "vectors", "bits")} == {
        "chunks": 4, "chunks_fts": 4, "vectors": 4, "bits": 4,
    }  # fmt: skip
    assert index.text_candidates(["old"], [], 10) == []
    assert len(index.text_candidates(["new"], [], 10)) == 4


def test_an_older_revision_is_refused_and_leaves_nothing(index: LibsqlSearchIndex) -> None:
    put(index, "doc", 3, "new", 2)
    assert not put(index, "doc", 5, "old", 1)
    assert not index.remove(document_id="doc", version=1, revision=1)
    assert rows(driver_of(index), "chunks") == 3
    assert index.text_candidates(["old"], [], 10) == []


def test_a_removed_document_stays_removed_for_older_orders(index: LibsqlSearchIndex) -> None:
    put(index, "doc", 3, "word", 1)
    assert index.remove(document_id="doc", version=1, revision=2)
    assert not put(index, "doc", 3, "word", 1)
    entry = index.entry("doc")
    assert entry is not None
    assert (entry.removed, rows(driver_of(index), "chunks")) == (True, 0)


def test_the_nearest_vector_comes_first_and_documents_can_be_chosen(index: LibsqlSearchIndex) -> None:
    put(index, "a", 5, "alpha", 1)
    put(index, "b", 5, "beta", 1)
    best = index.vector_candidates(vector("alpha3"), [], 3)
    found = index.chunks([candidate.chunk_id for candidate in best])
    assert found[best[0].chunk_id].text == "alpha text number3"
    assert best[0].score == pytest.approx(1.0, abs=1e-5)
    only_b = index.vector_candidates(vector("alpha3"), ["b"], 10)
    assert {chunk.document_id for chunk in index.chunks([c.chunk_id for c in only_b]).values()} == {"b"}
    assert index.text_candidates(["alpha"], ["b"], 10) == []


def test_entries_come_in_order_and_whole(index: LibsqlSearchIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_sql, "ENTRY_PAGE", 2)
    for name in ("c", "a", "e", "b", "d"):
        put(index, name, 1, name, 1)
    assert [entry.document_id for entry in index.entries()] == ["a", "b", "c", "d", "e"]


def test_another_dimension_or_model_is_refused_naming_both(index: LibsqlSearchIndex) -> None:
    driver = driver_of(index)
    with pytest.raises(IndexMismatchError, match=r"64 dimensions of model-a.*model-b gives 768"):
        LibsqlSearchIndex(driver, model="model-b", dimension=768).check()
    with pytest.raises(IndexMismatchError, match="model-b"):
        LibsqlSearchIndex(driver, model="model-b", dimension=64).check()


def test_a_vector_of_another_dimension_is_refused_before_it_is_written(index: LibsqlSearchIndex) -> None:
    with pytest.raises(IndexMismatchError, match="32 dimensions, the search index 64"):
        index.vector_candidates(b"\x00" * 128, [], 1)


class InterruptedWriteError(Exception):
    pass


class FailingDriver(LibsqlFileDriver):
    """Dies before the given write, as a killed process would; looks at what a reader sees meanwhile."""

    max_batch_rows = 2

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.die_at: int | None = None
        self.writes = 0
        self.before_write: Callable[[], object] | None = None

    def write(self, statements: Sequence[Statement], *, wait_seconds: float = 20.0) -> list[list[Row]]:
        if self.writes == self.die_at:
            raise InterruptedWriteError
        self.writes += 1
        if self.before_write is not None:
            self.before_write()
        return super().write(statements, wait_seconds=wait_seconds)


@pytest.mark.parametrize("die_at", range(8))
def test_killed_at_any_write_readers_see_one_whole_generation(tmp_path: Path, die_at: int) -> None:
    driver = FailingDriver(tmp_path / "index.db")
    index = LibsqlSearchIndex(driver, model="m", dimension=DIMENSION)
    index.check()
    put(index, "doc", 9, "old", 1)
    driver.writes, driver.die_at = 0, die_at
    try:
        put(index, "doc", 7, "new", 2)
    except InterruptedWriteError:
        assert die_at < 8
    old, new = (len(index.text_candidates([word], [], 50)) for word in ("old", "new"))
    assert (old, new) in {(9, 0), (0, 7)}
    seen = index.chunks([c.chunk_id for c in index.vector_candidates(vector("x"), [], 50)])
    assert len({chunk.version for chunk in seen.values()}) == 1
    driver.die_at = None
    put(index, "doc", 7, "new", 2)
    assert (rows(driver, "chunks"), index.count_chunks()) == (7, 7)


def test_a_large_document_becomes_visible_at_once_not_row_by_row(tmp_path: Path) -> None:
    driver = FailingDriver(tmp_path / "index.db")
    index = LibsqlSearchIndex(driver, model="m", dimension=DIMENSION)
    index.check()
    put(index, "doc", 9, "old", 1)
    seen: set[tuple[int, int]] = set()
    driver.before_write = lambda: seen.add(
        (len(index.text_candidates(["old"], [], 50)), len(index.text_candidates(["new"], [], 50)))
    )
    put(index, "doc", 7, "new", 2)
    assert seen == {(9, 0), (0, 7)}


def test_orphans_of_a_writer_that_is_gone_are_swept_and_those_at_work_are_not(tmp_path: Path) -> None:
    now = 1_000_000.0
    driver = FailingDriver(tmp_path / "index.db")
    index = LibsqlSearchIndex(driver, model="m", dimension=DIMENSION, now=lambda: now)
    index.check()
    put(index, "kept", 3, "kept", 1)
    driver.writes, driver.die_at = 0, 2
    with pytest.raises(InterruptedWriteError):
        put(index, "lost", 9, "lost", 1)
    driver.die_at = None
    assert index.sweep_orphans() == 0
    now += 3_601
    assert index.sweep_orphans() == 4
    assert rows(driver, "chunks") == 3


def test_two_writers_of_one_revision_leave_one_generation(index: LibsqlSearchIndex) -> None:
    errors: list[Exception] = []

    def write() -> None:
        try:
            put(index, "doc", 6, "word", 1)
        except IndexBusyError as exc:
            errors.append(exc)

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(errors) < 4
    assert (rows(driver_of(index), "chunks"), index.count_chunks()) == (6, 6)


def test_a_writer_whose_staged_rows_another_removed_publishes_nothing(tmp_path: Path) -> None:
    driver = FailingDriver(tmp_path / "index.db")
    index = LibsqlSearchIndex(driver, model="m", dimension=DIMENSION)
    other = LibsqlSearchIndex(FailingDriver(tmp_path / "index.db"), model="m", dimension=DIMENSION)
    index.check()
    driver.writes = 0

    def interfere() -> None:
        if driver.writes == 3:
            put(other, "doc", 5, "other", 1)

    driver.before_write = interfere
    with pytest.raises(IndexBusyError, match="came between"):
        put(index, "doc", 7, "mine", 1)
    assert len(index.text_candidates(["other"], [], 50)) == 5
    assert index.text_candidates(["mine"], [], 50) == []


HOLD = """
import sys, time, libsql
connection = libsql.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("held", flush=True)
time.sleep(float(sys.argv[2]))
connection.execute("COMMIT")
"""


@pytest.fixture
def hold() -> Iterator[Callable[[Path, float], None]]:
    """Hold the file's writer from another process."""
    started: list[subprocess.Popen[str]] = []

    def begin(path: Path, seconds: float) -> None:
        process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-c", HOLD, str(path), str(seconds)], stdout=subprocess.PIPE, text=True
        )
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"

    yield begin
    for process in started:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def test_writers_wait_for_one_that_holds_the_file_and_all_succeed(
    tmp_path: Path, hold: Callable[[Path, float], None]
) -> None:
    index = LibsqlSearchIndex(LibsqlFileDriver(tmp_path / "index.db"), model="m", dimension=DIMENSION)
    index.check()
    hold(tmp_path / "index.db", 3.0)
    threads = [threading.Thread(target=put, args=(index, f"doc-{n}", 3, f"word{n}", 1)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert index.count_chunks() == 9


def test_a_writer_held_too_long_gives_up_in_time_with_a_transient_error_and_nothing_written(
    tmp_path: Path, hold: Callable[[Path, float], None]
) -> None:
    index = LibsqlSearchIndex(LibsqlFileDriver(tmp_path / "index.db"), model="m", dimension=DIMENSION)
    index.check()
    hold(tmp_path / "index.db", 60.0)
    started = time.monotonic()
    with pytest.raises(IndexBusyError):
        index.replace(document_id="doc", title="doc", version=1, revision=1, chunks=chunks(3, "word"), wait_seconds=1.0)
    assert time.monotonic() - started < 3.0
    assert (index.entry("doc"), rows(driver_of(index), "chunks")) == (None, 0)


def test_a_server_whose_writer_is_held_is_waited_for(
    server: HranaServer, tmp_path: Path, hold: Callable[[Path, float], None]
) -> None:
    index = LibsqlSearchIndex(LibsqlHttpDriver(server.url, TOKEN), model="m", dimension=DIMENSION)
    index.check()
    hold(tmp_path / "server.db", 0.5)
    assert put(index, "doc", 3, "word", 1)


def test_a_write_to_a_server_is_one_request_so_no_transaction_waits_for_the_network(server: HranaServer) -> None:
    index = LibsqlSearchIndex(LibsqlHttpDriver(server.url, TOKEN), model="m", dimension=DIMENSION)
    index.check()
    server.requests.clear()
    put(index, "doc", 9, "word", 1)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("status", "error", "says"),
    [
        (401, IndexAccessError, "TURSO_AUTH_TOKEN"),
        (404, IndexAccessError, "INDEX_URL"),
        (500, IndexUnavailableError, "HTTP 500"),
        (502, IndexUnavailableError, "HTTP 502"),
    ],
)
def test_a_server_that_answers_otherwise_is_named_with_the_remedy(
    server: HranaServer, status: int, error: type[Exception], says: str
) -> None:
    server.answer_with = status
    driver = LibsqlHttpDriver(server.url, TOKEN)
    with pytest.raises(error, match=says):
        driver.read([Statement("SELECT 1")])


def test_a_wrong_token_is_refused_without_showing_it(server: HranaServer) -> None:
    settings = IndexSettings(index_url=server.url, turso_auth_token=SecretStr("wrong-token-value"))
    with pytest.raises(IndexAccessError, match="TURSO_AUTH_TOKEN") as caught:
        open_index(settings)
    assert "wrong-token-value" not in str(caught.value)


def test_a_server_that_is_not_there_is_transient() -> None:
    driver = LibsqlHttpDriver("http://127.0.0.1:9", None)
    with pytest.raises(IndexUnavailableError, match=r"127\.0\.0\.1:9 did not answer"):
        driver.read([Statement("SELECT 1")])


@pytest.mark.parametrize("url", ["", "ftp://host/x", "file://host/x", "index.db", "file:", "libsql:"])
def test_an_address_that_is_none_is_refused_with_the_forms_that_are(url: str) -> None:
    with pytest.raises(IndexAccessError, match="file:<path>"):
        index_driver(IndexSettings.model_construct(index_url=url, turso_auth_token=None, embedding_model="m"))


def test_a_file_that_is_no_index_is_refused(tmp_path: Path) -> None:
    (tmp_path / "index.db").write_bytes(b"not a database at all" * 100)
    index = LibsqlSearchIndex(LibsqlFileDriver(tmp_path / "index.db"), model="m", dimension=DIMENSION)
    with pytest.raises(IndexAccessError):
        index.check()


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    index = LibsqlSearchIndex(LibsqlFileDriver(tmp_path / "file" / "index.db"), model="m", dimension=DIMENSION)
    with pytest.raises(IndexAccessError, match="INDEX_URL"):
        index.check()


OPEN = """
import sys
from pathlib import Path
from api_services.documents.index.libsql import LibsqlFileDriver
from api_services.documents.index.sql import LibsqlSearchIndex
sys.stdin.readline()
LibsqlSearchIndex(LibsqlFileDriver(Path(sys.argv[1])), model="m", dimension=64).check()
"""


def test_processes_that_make_the_same_file_at_once_all_get_it(tmp_path: Path) -> None:
    processes = [
        subprocess.Popen(  # noqa: S603
            [sys.executable, "-c", OPEN, str(tmp_path / "index.db")],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    outcomes = [process.communicate(timeout=60)[1] for process in processes]
    assert outcomes == [""] * 4


def test_a_new_file_that_another_holds_is_waited_for(tmp_path: Path, hold: Callable[[Path, float], None]) -> None:
    hold(tmp_path / "index.db", 0.7)
    index = LibsqlSearchIndex(LibsqlFileDriver(tmp_path / "index.db"), model="m", dimension=DIMENSION)
    index.check()
    assert index.count_chunks() == 0
