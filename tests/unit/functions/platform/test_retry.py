import math

import pytest

from api_services.errors import (
    AppError,
    BusyError,
    ConfigurationError,
    ConflictError,
    DependencyError,
    InvalidInputError,
    NotFoundError,
    PermanentError,
    QuotaExhaustedError,
    RateLimitedError,
    TransientError,
)
from functions.platform.retry import Action, DeadLetter, Defer, Redeliver, code_of, margin_seconds, plan


def at(error: BaseException, receive_count: int = 1, *, jitter: float = 1.0, in_flight: float = 0.0) -> Action:
    return plan(error, receive_count, in_flight_seconds=in_flight, jitter=lambda: jitter)


@pytest.mark.parametrize("kind", [PermanentError, InvalidInputError, NotFoundError, ConflictError, QuotaExhaustedError])
@pytest.mark.parametrize("receive_count", [1, 3, 1000])
def test_a_permanent_error_is_dead_lettered_at_once_however_often_it_was_received(
    kind: type[PermanentError], receive_count: int
) -> None:
    assert at(kind("No."), receive_count) == DeadLetter()


@pytest.mark.parametrize(
    "error", [ValueError("x"), MemoryError(), KeyError(), AppError("x"), ConfigurationError("x"), TimeoutError()]
)
def test_an_error_of_no_known_kind_is_redelivered_by_the_queue(error: BaseException) -> None:
    assert at(error) == Redeliver()


@pytest.mark.parametrize(
    ("receive_count", "jitter", "seconds"),
    [
        (-5, 1.0, 5),
        (0, 1.0, 5),
        (1, 0.0, 3),
        (1, 1.0, 5),
        (2, 0.0, 5),
        (2, 1.0, 10),
        (3, 0.5, 15),
        (3, 1.0, 20),
        (9, 1.0, 900),
        (9, 0.0, 450),
        (10**9, 1.0, 900),
    ],
)
def test_a_transient_error_backs_off_exponentially_with_jitter(receive_count: int, jitter: float, seconds: int) -> None:
    for error in (TransientError("x"), BusyError("x"), DependencyError("x"), RateLimitedError("x")):
        assert at(error, receive_count, jitter=jitter) == Defer(seconds)


@pytest.mark.parametrize(
    ("stated", "jitter", "seconds"),
    [
        (1, 0.0, 1),
        (0.2, 0.0, 1),
        (60, 0.0, 60),
        (60, 1.0, 66),
        (3600, 0.5, 3780),
        (43_200, 0.0, 43_200),
        (50_000, 0.0, 43_200),
        (1e300, 1.0, 43_200),
        (math.inf, 1.0, 43_200),
    ],
)
def test_a_stated_delay_is_never_undercut_and_ends_where_the_queue_ends(
    stated: float, jitter: float, seconds: int
) -> None:
    assert at(RateLimitedError("x", retry_after_seconds=stated), jitter=jitter) == Defer(seconds)


@pytest.mark.parametrize("stated", [0, -1, -math.inf, math.nan])
def test_a_stated_delay_that_says_nothing_is_ignored(stated: float) -> None:
    assert at(RateLimitedError("x", retry_after_seconds=stated), jitter=1.0) == Defer(5)


@pytest.mark.parametrize(
    ("in_flight", "seconds"), [(0, 43_200), (3_600, 39_600), (43_199.5, 0), (43_200, 0), (90_000, 0), (-10, 43_200)]
)
def test_the_twelve_hours_count_from_the_receive(in_flight: float, seconds: int) -> None:
    assert at(RateLimitedError("x", retry_after_seconds=1e6), in_flight=in_flight) == Defer(seconds)


def test_the_code_is_the_errors_own_or_says_that_there_is_none() -> None:
    assert code_of(BusyError("x")) == "busy"
    assert code_of(BusyError("x", code="lease_held")) == "lease_held"
    assert code_of(ValueError("x")) == "unexpected"


@pytest.mark.parametrize(("timeout", "margin"), [(60, 6), (300, 30), (900, 90), (30, 5), (10, 5), (6, 3), (3, 1.5)])
def test_the_margin_is_a_tenth_at_least_five_seconds_and_at_most_half(timeout: float, margin: float) -> None:
    assert margin_seconds(timeout) == margin
