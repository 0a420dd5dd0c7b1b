"""Cursors of paged lists: opaque to callers, a moment and an id to us."""

import base64
import binascii
import json
from datetime import datetime
from typing import Any, Final

from api_services.errors import InvalidInputError

MAX_PAGE_SIZE: Final = 200
_MAX_CURSOR_LENGTH: Final = 512


def encode_cursor(moment: datetime, last_id: str) -> str:
    """The cursor that continues after the item of that moment and id."""
    return base64.urlsafe_b64encode(json.dumps([moment.isoformat(), last_id]).encode()).decode()


def decode_cursor(cursor: str) -> tuple[datetime, str]:
    """What `encode_cursor` was given; `InvalidInputError` for anything else."""
    try:
        if len(cursor) > _MAX_CURSOR_LENGTH:
            raise ValueError("too long")
        parts: Any = json.loads(base64.b64decode(cursor.encode("ascii"), altchars=b"-_", validate=True))
        moment, last_id = parts
        if not isinstance(moment, str) or not isinstance(last_id, str):
            raise TypeError("not two strings")
        parsed = datetime.fromisoformat(moment)
        if parsed.tzinfo is None:
            raise ValueError("not an aware datetime")
    except (ValueError, TypeError, binascii.Error, UnicodeError) as exc:
        raise InvalidInputError("The cursor is not one this list gave; leave it out to start over") from exc
    return parsed, last_id


def page_size(limit: int) -> int:
    """`limit` when it is between 1 and 200; `InvalidInputError` otherwise."""
    if not 1 <= limit <= MAX_PAGE_SIZE:
        raise InvalidInputError(f"limit: between 1 and {MAX_PAGE_SIZE}")
    return limit
