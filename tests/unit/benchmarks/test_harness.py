import importlib.util
import json
from pathlib import Path

import pytest

from api_services.errors import InvalidInputError
from benchmarks import harness, wrapper
from benchmarks.harness import BenchResult, BenchSkippedError, Row, side_by_side
from benchmarks.registry import BENCHES, BenchSpec
from cli.bench import lib


@pytest.mark.parametrize(
    ("row", "ratio", "met"),
    [
        (Row(name="a", value=3, unit="us"), None, None),
        (Row(name="a", value=3, unit="us", floor=2), 1.5, None),
        (Row(name="a", value=3, unit="us", floor=2, target=1.5), 1.5, True),
        (Row(name="a", value=3, unit="us", floor=2, target=1.4), 1.5, False),
        (Row(name="a", value=3, unit="/s", floor=2, target=1.5, higher_is_better=True), 1.5, True),
        (Row(name="a", value=3, unit="/s", floor=2, target=1.6, higher_is_better=True), 1.5, False),
        (Row(name="a", value=3, unit="MB", target=2), None, False),
        (Row(name="a", value=3, unit="MB", target=4), None, True),
    ],
)
def test_a_target_bounds_the_ratio_or_the_value_where_there_is_no_floor(
    row: Row, ratio: float | None, met: bool | None
) -> None:
    assert (row.ratio, row.is_met) == (ratio, met)


def test_what_does_more_work_is_measured_as_slower() -> None:
    def little() -> int:
        return sum(range(300))

    def much() -> int:
        return sum(range(3_000))

    seconds = side_by_side({"little": little, "much": much}, floor="little", repeat=20, rounds=15)
    assert 3 < seconds["much"] / seconds["little"] < 40


def test_every_benchmark_has_a_name_of_its_own_and_a_module() -> None:
    assert len({bench.name for bench in BENCHES}) == len(BENCHES)
    assert [bench.name for bench in BENCHES if importlib.util.find_spec(bench.module) is None] == []


def test_an_unknown_benchmark_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidInputError, match="wrapper"):
        lib.named(["no-such"])
    assert [bench.name for bench in lib.named(["wrapper"])] == ["wrapper"]
    assert lib.named([]) == list(BENCHES)


def test_a_benchmark_that_cannot_run_here_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(quick: bool) -> list[Row]:
        raise BenchSkippedError("the local stage is not up")

    monkeypatch.setattr(wrapper, "run", refuse)
    (result,) = harness.run([BenchSpec("wrapper", "benchmarks.wrapper", "x")], quick=True)
    assert result == BenchResult("wrapper", (), "the local stage is not up")


def test_a_run_is_written_as_json(tmp_path: Path) -> None:
    row = Row(name="a", value=3, unit="us", floor=2, floor_name="least", target=1.6)
    lib.write([BenchResult("one", (row,))], tmp_path / "deep" / "bench.json", quick=True)
    document = json.loads((tmp_path / "deep" / "bench.json").read_text())
    assert document["quick"] is True
    assert document["results"][0]["rows"][0]["ratio"] == 1.5
    assert lib.cells(BenchResult("one", (row,))) == [["a", "3 us", "2 us (least)", "1.50", "<= 1.6", True]]


def test_the_wrapper_and_its_peers_are_measured_over_validation_alone() -> None:
    rows = {row.name: row for row in wrapper.run(True)}
    assert {"wrapper, batch 10", "wrapper, grouped, batch 10", "Powertools, its parser, batch 10"} <= set(rows)
    assert all(row.floor and row.value > 0 for row in rows.values())
    assert rows["wrapper, batch 10"].target == 1.6
    for function in wrapper.contestants(wrapper.event_of(3)).values():
        assert function() in (None, {"batchItemFailures": []})
