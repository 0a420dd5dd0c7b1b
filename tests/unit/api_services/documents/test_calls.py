import threading
import time

import pytest

from api_services.documents.calls import OutOfTimeError, RateGate, StoppedError, patiently
from api_services.errors import DependencyError, QuotaExhaustedError, RateLimitedError


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class QuickGate(RateGate):
    """Time passes at once when it is waited for."""

    def __init__(self) -> None:
        self.fake = Clock()
        super().__init__(clock=self.fake, jitter=lambda: 0.5)
        self.waits: list[float] = []
        self._changed = Waiting(self)


class Waiting(threading.Event):
    def __init__(self, gate: QuickGate) -> None:
        super().__init__()
        self.gate = gate

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        self.gate.waits.append(timeout)
        self.gate.fake.now += timeout
        return False


def failing(*errors: Exception) -> "Script":
    return Script(list(errors))


class Script:
    def __init__(self, errors: list[Exception]) -> None:
        self.errors = errors
        self.timeouts: list[float] = []

    def __call__(self, timeout_seconds: float) -> str:
        self.timeouts.append(timeout_seconds)
        if self.errors:
            raise self.errors.pop(0)
        return "answer"


def test_a_rate_limit_is_waited_out_for_as_long_as_it_says() -> None:
    gate = QuickGate()
    call = failing(RateLimitedError("slow down", retry_after_seconds=7), RateLimitedError("again"))
    assert patiently(gate, 1_000.0, call) == "answer"
    assert gate.waits[0] == pytest.approx(7)
    assert len(call.timeouts) == 3


def test_one_rate_limit_shuts_the_gate_for_everybody() -> None:
    gate = QuickGate()
    gate.shut(30)
    patiently(gate, 1_000.0, failing())
    assert gate.waits == [pytest.approx(30)]


def test_a_wait_past_the_deadline_is_not_begun_and_says_how_long_it_would_be() -> None:
    gate = QuickGate()
    with pytest.raises(OutOfTimeError) as caught:
        patiently(gate, 150.0, failing(RateLimitedError("later", retry_after_seconds=300)))
    assert caught.value.wait_seconds == pytest.approx(300)
    assert gate.waits == []


def test_no_call_begins_or_lasts_past_the_deadline() -> None:
    gate = QuickGate()
    call = failing()
    patiently(gate, 110.0, call)
    assert call.timeouts == [pytest.approx(10)]
    with pytest.raises(OutOfTimeError):
        patiently(gate, 101.0, call)


def test_a_fault_is_tried_again_a_bounded_number_of_times() -> None:
    call = failing(*[DependencyError("down") for _ in range(9)])
    with pytest.raises(DependencyError):
        patiently(QuickGate(), 1_000.0, call)
    assert len(call.timeouts) == 4


def test_a_permanent_error_is_not_tried_again_and_stops_everybody() -> None:
    gate = QuickGate()
    call = failing(QuotaExhaustedError("no money"))
    with pytest.raises(QuotaExhaustedError):
        patiently(gate, 1_000.0, call)
    assert len(call.timeouts) == 1
    with pytest.raises(StoppedError):
        patiently(gate, 1_000.0, call)


def test_who_waits_at_a_shut_gate_leaves_when_it_is_stopped() -> None:
    gate = RateGate()
    gate.shut(60)
    left: list[float] = []

    def wait() -> None:
        with pytest.raises(StoppedError):
            gate.pass_through(time.monotonic() + 600)
        left.append(time.monotonic())

    thread = threading.Thread(target=wait)
    thread.start()
    gate.stop()
    thread.join(5)
    assert left
