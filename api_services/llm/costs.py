"""Tokens and what they cost."""

from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from typing import Final


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """Tokens of one call or of several; cached input tokens are among the input tokens."""

    input_tokens: int = 0
    cached_input_tokens: int = 0
    output_tokens: int = 0

    @property
    def total_tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def __add__(self, other: "TokenUsage") -> "TokenUsage":
        return TokenUsage(
            self.input_tokens + other.input_tokens,
            self.cached_input_tokens + other.cached_input_tokens,
            self.output_tokens + other.output_tokens,
        )


USD_PER_MILLION_TOKENS: Final[dict[str, tuple[str, str, str]]] = {
    "gpt-5": ("1.25", "0.125", "10"),
    "gpt-5-mini": ("0.25", "0.025", "2"),
    "gpt-5-nano": ("0.05", "0.005", "0.4"),
    "text-embedding-3-small": ("0.02", "0.02", "0"),
    "text-embedding-3-large": ("0.13", "0.13", "0"),
}
"""Input, cached input, output (OpenAI's price list). A dollar per million tokens is a millionth of a dollar a token."""


def cost_micro_usd(model: str, usage: TokenUsage) -> int | None:
    """Millionths of a dollar, rounded up; none for a model without a price here. Dated names cost as their family."""
    family = max((name for name in USD_PER_MILLION_TOKENS if _is_of(model, name)), key=len, default=None)
    if family is None:
        return None
    fresh, cached, output = map(Decimal, USD_PER_MILLION_TOKENS[family])
    cost = (
        (usage.input_tokens - usage.cached_input_tokens) * fresh
        + usage.cached_input_tokens * cached
        + usage.output_tokens * output
    )
    return int(cost.to_integral_value(ROUND_CEILING))


def _is_of(model: str, family: str) -> bool:
    return model == family or (model.startswith(f"{family}-") and model[len(family) + 1 :][:1].isdigit())
