"""Cursors."""

import base64
from datetime import UTC, datetime

import pytest

from api_services.errors import InvalidInputError
from api_services.paging import decode_cursor, encode_cursor, page_size


def test_a_cursor_gives_back_what_it_was_made_of() -> None:
    moment = datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)
    assert decode_cursor(encode_cursor(moment, "iv-1:lot")) == (moment, "iv-1:lot")


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "?",
        "é",
        "a" * 10_000,
        *(
            base64.urlsafe_b64encode(raw).decode()
            for raw in (
                b"[]",
                b"{}",
                b"null",
                b"[1,2]",
                b'["2026-01-02T03:04:05","x"]',
                b'["x","y"]',
                b'["2026-01-02T03:04:05+00:00",{"$gt":""}]',
                b"\xff",
            )
        ),
    ],
)
def test_a_cursor_that_is_none_of_ours_is_refused(cursor: str) -> None:
    with pytest.raises(InvalidInputError):
        decode_cursor(cursor)


@pytest.mark.parametrize("limit", [0, -1, 201])
def test_a_page_has_between_one_and_two_hundred_items(limit: int) -> None:
    with pytest.raises(InvalidInputError):
        page_size(limit)
