"""How commands show what they found: a table for people, JSON for programs."""

import json
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table


def print_json(value: Any) -> None:
    """Print one JSON document; what JSON does not know is printed as text."""
    print(json.dumps(value, indent=2, default=str, ensure_ascii=False))


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]], *, empty: str) -> None:
    """Print a table, or the sentence `empty` where there is nothing to show."""
    console = Console(emoji=False)
    if not rows:
        console.print(empty, markup=False)
        return
    table = Table(title=title, title_justify="left", header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(_cell(value) for value in row))
    console.print(table)


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "[green]yes[/]" if value else "[red]no[/]"
    return str(value).replace("[", r"\[")
