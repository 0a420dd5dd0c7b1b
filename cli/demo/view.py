"""The demonstration as people see it: a live table while it runs, tables when it is done."""

import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Final

from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from cli.demo.documents import DocumentsPlayed
from cli.demo.interviews_checks import lot_names
from cli.demo.interviews_played import InterviewShown, InterviewsPlayed, OrganizationShown
from cli.demo.lib import Outcome
from cli.progress import DrawnProgress
from cli.search.lib import marked_snippet
from local.running import RunningStage
from toolchain.progress import Progress

LOG_EVERY_SECONDS: Final = 5.0
_STATUS_STYLES: Final = {"COMPLETED": "green", "FAILED": "red", "PROCESSING": "yellow", "CREATED": "cyan"}


class DemoView:
    """Draws progress on stderr and results on stdout; `quiet` leaves the results to whoever prints JSON."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._console = Console(quiet=quiet, highlight=False, emoji=False)
        self._progress_console = Console(file=sys.stderr, highlight=False, emoji=False)
        self._progress = DrawnProgress(self._progress_console)
        self._live: Live | None = None
        self._written, self._written_at = "", -LOG_EVERY_SECONDS

    @property
    def progress(self) -> Progress:
        return self._progress

    @contextmanager
    def starting(self) -> Generator[None]:
        self.pause()
        with self._progress:
            yield

    def watch_interviews(self, played: InterviewsPlayed, doing: str) -> None:
        rows = Table(box=None, padding=(0, 2), show_edge=False)
        for column in ("interview", "words", "status", "settled", "credits", "report"):
            rows.add_column(column, style="", header_style="dim")
        for shown in played.interviews.values():
            rows.add_row(*_interview_row(shown))
        self._draw(doing, Group(Spinner("dots", Text(f" {doing}")), rows))

    def watch_documents(self, text: str) -> None:
        self._draw(text, Spinner("dots", Text(f" {text}")))

    def interviews(self, played: InterviewsPlayed) -> None:
        self.pause()
        interviews = _table("Interviews", "interview", "words", "status", "settled", "credits", "report")
        for shown in played.interviews.values():
            interviews.add_row(*_interview_row(shown))
        self._console.print(interviews)
        for organization in played.organizations.values():
            self._console.print(_lots(organization))
            self._console.print(_ledger(organization, played))
        for shown in played.interviews.values():
            if shown.report is not None:
                self._console.print(_report(shown))
        queues = _table("Queues", "queue", "waiting", "in flight", "dead messages")
        for depth in played.queues:
            queues.add_row(depth.name, str(depth.waiting), str(depth.in_flight), str(depth.dead))
        self._console.print(queues)
        if played.evidence is not None:
            for line in played.evidence.dropped_lines:
                self._console.print(
                    f"logged: {line.get('event')} {line.get('code')}, message {line.get('messageId')}, "
                    f"request {line.get('requestId')}",
                    style="dim",
                    soft_wrap=True,
                    markup=False,
                )
        self._console.print("\n[bold]Promises[/]")
        for promise, reason in played.checks.items():
            mark = "[green]holds [/]" if reason is None else "[red]broken[/]"
            self._console.print(f"  {mark}  {escape(promise)}{escape(f': {reason}') if reason else ''}", soft_wrap=True)
        self._console.print()

    def documents(self, played: DocumentsPlayed) -> None:
        self.pause()
        facts = _table("Documents", "", "")
        states = ", ".join(f"{count} {state}" for state, count in sorted(played.states.items()))
        facts.add_row("approved in one go", f"{played.documents}: {states}")
        facts.add_row("chunks", f"{played.chunks:,} in {played.index_seconds:.1f} s")
        if played.index_calls is not None:
            calls = played.index_calls
            facts.add_row("calls for all of them", f"{calls.enrichments} enrichments, {calls.embeddings} embeddings")
        facts.add_row("the huge one", f"{played.huge_bytes:,} bytes")
        facts.add_row("the malformed one", escape(played.malformed_reason))
        facts.add_row(
            "edited in one paragraph",
            f"{played.edited_documents} documents of {played.edited_chunks} chunks in {played.edit_seconds:.1f} s",
        )
        if played.edit_calls is not None:
            calls = played.edit_calls
            facts.add_row("calls for the edits", f"{calls.enrichments} enrichments, {calls.embeddings} embeddings")
        self._console.print(facts)
        for query, page in played.searches.items():
            hits = _table(f"Search: {query}", "document", "section", "found")
            for hit in page.hits:
                hits.add_row(escape(hit.document_title), escape(hit.heading), marked_snippet(hit))
            self._console.print(hits)

    def summary(self, outcome: Outcome, stage: RunningStage | None) -> None:
        self.pause()
        times = _table("Time", "step", "seconds")
        for name, seconds in outcome.steps.items():
            times.add_row(name, f"{seconds:.1f}", style="dim" if name.startswith(" ") else "")
        self._console.print(times)
        if stage is not None:
            self._console.print(
                f"The stage runs: API {stage.api_url}, portal {stage.api_url}/portal. `./sophia down` stops it.",
                soft_wrap=True,
            )
        if outcome.faults:
            for fault in outcome.faults:
                self._console.print(f"[red]broken:[/] {escape(fault)}", soft_wrap=True)
        else:
            self._console.print("[green]Every promise holds.[/]")

    def _draw(self, text: str, shown: Any) -> None:
        if not self._progress_console.is_terminal:
            # A log gets a line when something else goes on, at most one in a while.
            if text != self._written and time.monotonic() - self._written_at > LOG_EVERY_SECONDS:
                self._written, self._written_at = text, time.monotonic()
                self._progress_console.print(f"doing {text}", markup=False)
            return
        if self._live is None:
            self._live = Live(console=self._progress_console, refresh_per_second=8, transient=True)
            self._live.start()
        self._live.update(shown)

    def pause(self) -> None:
        """Take down what is drawn live."""
        if self._live is not None:
            self._live.stop()
            self._live = None


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", header_style="dim")
    for column in columns:
        numeric = column in {"words", "credits", "amount", "left", "waiting", "in flight", "dead messages", "seconds"}
        table.add_column(column, justify="right" if numeric else "left", overflow="fold")
    return table


def _interview_row(shown: InterviewShown) -> tuple[str, ...]:
    status = _styled(shown.status) + (f" [dim]{escape(shown.failure_code)}[/]" if shown.failure_code else "")
    credits = "-" if shown.consumed is None else f"{shown.consumed} of {shown.required}"
    report = _styled(shown.report_status)
    if shown.report is not None:
        report += f" [bold]{shown.report['overallScore']}[/] {shown.report['recommendation'].replace('_', ' ')}"
    return (shown.key, f"{shown.words:,}", status, "yes" if shown.settled else "-", credits, report)


def _styled(status: str) -> str:
    style = _STATUS_STYLES.get(status)
    return f"[{style}]{status}[/]" if style else status


def _lots(organization: OrganizationShown) -> Table:
    balance = organization.balance
    title = f"{organization.name}: {balance['available']} credits available, {balance['overdraft']} owed"
    names = lot_names(organization)
    lots = _table(f"Lots of {title}", "lot", "amount", "left", "expires")
    for lot in sorted(organization.lots, key=lambda one: one["expiresAt"] or "9999"):
        lots.add_row(names[lot["lotId"]], str(lot["amount"]), str(lot["remaining"]), _expiry(lot["expiresAt"]))
    return lots


def _expiry(moment: str | None) -> str:
    if moment is None:
        return "never"
    days = (datetime.fromisoformat(moment) - datetime.now(UTC)).total_seconds() / 86_400
    return f"in {round(days)} days"


def _ledger(organization: OrganizationShown, played: InterviewsPlayed) -> Table:
    lots = lot_names(organization)
    interviews = {shown.interview_id: shown.key for shown in played.interviews.values()}
    ledger = _table(f"Ledger of {organization.name}", "kind", "amount", "lot", "interview")
    for entry in reversed(organization.ledger):
        ledger.add_row(
            entry["kind"].lower(),
            f"{entry['amount']:+d}",
            lots.get(entry["lotId"], ""),
            interviews.get(entry["interviewId"], ""),
        )
    ledger.add_row("[dim]sum[/]", f"[dim]{sum(entry['amount'] for entry in organization.ledger):+d}[/]")
    return ledger


def _report(shown: InterviewShown) -> Table:
    report = shown.report or {}
    title = f"Report of {shown.key}: {report['overallScore']} of 100, {report['recommendation'].replace('_', ' ')}"
    table = _table(title, "competency", "score", "in the candidate's words")
    for one in report["competencies"]:
        table.add_row(one["competency"].replace("_", " "), str(one["score"]), escape(f"“{one['evidenceQuote']}”"))
    return table
