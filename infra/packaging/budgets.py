"""What a package may weigh and how long its import may take. A build over its budget fails; this is the one place."""

from dataclasses import dataclass
from typing import Final

from infra.packaging.errors import BudgetError

MEGABYTE: Final = 1_000_000

UPLOAD_LIMIT_BYTES: Final = 50 * 1024 * 1024
"""A zip uploaded directly (Lambda guide, gettingstarted-limits)."""

UNZIPPED_LIMIT_BYTES: Final = 250 * 1024 * 1024
"""Unzipped, layers included (same page)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Sizes in bytes; the import is the handler's, in processor time of a fresh interpreter."""

    zip_bytes: int
    unzipped_bytes: int
    import_ms: int

    def check_sizes(self, function: str, zip_bytes: int, unzipped_bytes: int) -> None:
        """Raise `BudgetError` where a size passes the budget."""
        for what, size, budget in (
            ("zip", zip_bytes, self.zip_bytes),
            ("unzipped package", unzipped_bytes, self.unzipped_bytes),
        ):
            if size > budget:
                raise BudgetError(
                    f"{function}: the {what} is {size / MEGABYTE:.1f} MB, its budget is {budget / MEGABYTE:.1f} MB. "
                    "Drop a dependency, or raise the budget in infra/packaging/budgets.py"
                )

    def check_import(self, function: str, milliseconds: float) -> None:
        """Raise `BudgetError` where the import takes longer than the budget."""
        if milliseconds > self.import_ms:
            raise BudgetError(
                f"{function}: importing the handler takes {milliseconds:.0f} ms, its budget is {self.import_ms} ms. "
                f"See why with ./sophia package --imports {function}, or raise it in infra/packaging/budgets.py"
            )


DEFAULT: Final = Budget(zip_bytes=12 * MEGABYTE, unzipped_bytes=40 * MEGABYTE, import_ms=600)

WITH_MODEL: Final = Budget(zip_bytes=30 * MEGABYTE, unzipped_bytes=90 * MEGABYTE, import_ms=900)
"""Functions that carry the OpenAI client and tracing."""

BUDGETS: Final = {
    "report_generate": WITH_MODEL,
    "ingest": WITH_MODEL,
    "reconcile_index": WITH_MODEL,
}


def budget_of(function: str) -> Budget:
    """The budget of a function by its folder."""
    return BUDGETS.get(function, DEFAULT)
