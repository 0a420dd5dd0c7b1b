"""What tokens cost."""

import pytest

from api_services.llm.costs import TokenUsage, cost_micro_usd


@pytest.mark.parametrize(
    ("model", "usage", "expected"),
    [
        ("gpt-5-mini", TokenUsage(1_000_000, 0, 1_000_000), 2_250_000),
        ("gpt-5-mini-2025-08-07", TokenUsage(1_000_000, 1_000_000, 0), 25_000),
        ("gpt-5", TokenUsage(4, 0, 0), 5),
        ("gpt-5-mini", TokenUsage(1, 0, 0), 1),
        ("gpt-5-mini", TokenUsage(), 0),
        ("gpt-5-future", TokenUsage(1, 0, 1), None),
        ("gpt-50", TokenUsage(1, 0, 1), None),
        ("somebody-elses", TokenUsage(1, 0, 1), None),
    ],
)
def test_the_cost_is_that_of_the_models_family_rounded_up(model: str, usage: TokenUsage, expected: int | None) -> None:
    assert cost_micro_usd(model, usage) == expected


def test_usages_add_up() -> None:
    assert TokenUsage(1, 2, 3) + TokenUsage(10, 20, 30) == TokenUsage(11, 22, 33)
    assert TokenUsage(1, 1, 3).total_tokens == 4
