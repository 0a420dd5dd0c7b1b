"""`./sophia torture`: many interviews through real consumers that die at random moments, and a verdict."""

import dataclasses
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from api_services.errors import InvalidInputError
from cli.output import print_json, print_table
from cli.stage_access import JsonOption

if TYPE_CHECKING:
    from benchmarks.torture.run import Outcome

app = typer.Typer()

FAILED = 1


@app.command("torture")
def torture_command(
    interviews: Annotated[int, typer.Option(min=20, max=20_000, help="How many interviews flow through.")] = 2_000,
    documents: Annotated[
        int | None, typer.Option(min=10, max=2_000, help="Let so many documents flow instead of interviews.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Reproduces every decision: interviews, duplicates, kills, faults.")] = 7,
    timeout_minutes: Annotated[float, typer.Option(min=1, help="Give up after so long.")] = 30,
    keep: Annotated[Path | None, typer.Option(help="Keep data and logs of every process in this new folder.")] = None,
    json_output: JsonOption = False,
) -> None:
    """Kill consumers and MongoDB at random moments, let the model fail a third of its calls, then judge what is left.

    Exit code 1 when something does not hold. Uses servers of its own; no stage is touched.
    """
    if documents is not None:
        _documents(documents, seed, timeout_minutes, json_output=json_output)
        return
    from benchmarks.torture.run import torture
    from cli.progress import DrawnProgress

    if keep is not None and keep.exists():
        raise InvalidInputError(f"{keep} exists; name a folder that does not")
    with tempfile.TemporaryDirectory(prefix="sophia-torture-") as scratch, DrawnProgress() as progress:
        home = keep or Path(scratch)
        outcome = torture(interviews, seed, home=home, timeout_seconds=timeout_minutes * 60, progress=progress)
    if json_output:
        print_json(
            {
                "seed": seed,
                "interviews": interviews,
                "decisions": outcome.plan.digest,
                "seconds": round(outcome.seconds, 1),
                "holds": outcome.holds,
                "checks": [dataclasses.asdict(check) | {"holds": check.holds} for check in outcome.checks],
                "counts": dataclasses.asdict(outcome.counts),
                "languageModel": {key: outcome.llm_calls[key] for key in ("received", "answered", "faults")},
            }
        )
    else:
        rows = [(check.name, check.expected, check.found, check.holds) for check in outcome.checks]
        title = f"{interviews} interviews, seed {seed} (decisions {outcome.plan.digest}), {outcome.seconds:.0f} s"
        print_table(title, ("check", "expected", "found", "holds"), rows, empty="nothing was checked")
        print_table("On the way", ("what", "how many"), _on_the_way(outcome), empty="nothing")
    if not outcome.holds:
        raise typer.Exit(FAILED)


def _on_the_way(outcome: "Outcome") -> list[tuple[str, object]]:
    counts, calls = outcome.counts, outcome.llm_calls
    return [
        ("consumers killed", counts.consumers_killed),
        ("databases killed", counts.mongod_killed),
        ("checks of all invariants while running", counts.checks_under_way),
        ("found by the reconciler: not settled", sum(each.unsettled for each in counts.reconciled)),
        ("found by the reconciler: without a report", sum(each.without_report for each in counts.reconciled)),
        ("found by the reconciler: expired leases", sum(each.expired_leases for each in counts.reconciled)),
        ("messages redriven", counts.redriven),
        ("reports reset", counts.reports_reset),
        *((f"model calls {kind}", sum(calls[kind].values())) for kind in ("received", "answered")),
        *((f"model faults: {kind}", count) for kind, count in sorted(calls["faults"].items())),
    ]


def _documents(documents: int, seed: int, timeout_minutes: float, *, json_output: bool) -> None:
    from benchmarks.torture.documents import torture_documents
    from cli.progress import DrawnProgress

    with DrawnProgress() as progress:
        outcome = torture_documents(documents, seed, timeout_seconds=timeout_minutes * 60, progress=progress)
    if json_output:
        print_json(dataclasses.asdict(outcome) | {"holds": outcome.holds})
    else:
        rows = [(check.name, check.expected, check.found, check.holds) for check in outcome.checks]
        title = f"{documents} documents, seed {seed}, {outcome.seconds:.0f} s"
        print_table(title, ("check", "expected", "found", "holds"), rows, empty="nothing was checked")
        way = [
            ("consumers killed", outcome.kills),
            ("enrichments answered", outcome.enrichments),
            ("of these for a passage answered before", outcome.enrichments_twice),
            ("embedding calls answered", outcome.embeddings),
            ("passages embedded more than once", outcome.embeddings_twice),
            ("messages redriven", outcome.redriven),
            ("documents the reconciler ordered again", outcome.ordered_again),
        ]
        print_table("On the way", ("what", "how many"), way, empty="nothing")
    if not outcome.holds:
        raise typer.Exit(FAILED)
