from typing import Any

import pytest

from api_services.delivery.dead_letters import ATTRIBUTES_MAX, DeadLetterReason, reason_of, with_reason, without_reason

REASON = DeadLetterReason(
    error_class="NotFoundError", code="not_found", queue="interview-completed", message_id="m-1", receive_count=2
)


def own(count: int) -> dict[str, Any]:
    return {f"a{number}": {"DataType": "String", "StringValue": str(number)} for number in range(count)}


@pytest.mark.parametrize("count", range(ATTRIBUTES_MAX + 1))
def test_a_reason_takes_the_room_there_is_and_displaces_nothing(count: int) -> None:
    attributes = with_reason(own(count), REASON)
    assert len(attributes) <= ATTRIBUTES_MAX
    assert without_reason(attributes) == own(count)
    assert reason_of(attributes) == (REASON if count < ATTRIBUTES_MAX else None)


def test_a_reason_of_an_earlier_time_gives_way() -> None:
    later = DeadLetterReason(error_class="X", code="y", queue="q", message_id="m-2", receive_count=1)
    assert reason_of(with_reason(with_reason(own(5), REASON), later)) == later
    assert reason_of(with_reason(with_reason(own(9), REASON), later)) == later


@pytest.mark.parametrize(
    "attributes",
    [
        {},
        own(3),
        {"failureCode": {"DataType": "String", "StringValue": "x"}},
        {"failure": {"DataType": "String", "StringValue": "no json"}},
        {"failure": {"DataType": "String", "StringValue": "[]"}},
        {"failure": {"DataType": "Binary", "BinaryValue": b""}},
    ],
)
def test_what_is_no_reason_reads_as_none(attributes: dict[str, Any]) -> None:
    assert reason_of(attributes) is None
