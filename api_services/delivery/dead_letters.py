"""How a message carries the reason for which it was sent to a dead-letter queue: as message attributes.

Attributes are in the shape of the SQS API: `{"name": {"DataType": "String", "StringValue": "..."}}`.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

ATTRIBUTES_MAX: Final = 10
"""Message attributes per message (SQS guide, quotas-messages)."""

PACKED_ATTRIBUTE: Final = "failure"

Attributes = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterReason:
    """Why and from where a message was sent to its dead-letter queue."""

    error_class: str
    code: str
    queue: str
    message_id: str
    receive_count: int


_NAMES: Final[Mapping[str, str]] = {
    "code": "failureCode",
    "error_class": "failureClass",
    "message_id": "failureMessageId",
    "queue": "failureQueue",
    "receive_count": "failureReceiveCount",
}
REASON_ATTRIBUTES: Final = frozenset(_NAMES.values()) | {PACKED_ATTRIBUTE}


def with_reason(attributes: Mapping[str, Any], reason: DeadLetterReason) -> Attributes:
    """The attributes plus the reason: five attributes where they fit, else one with JSON, else (ten are taken) none.

    The message's own attributes are kept; the reason of an earlier failure is replaced.
    """
    result = without_reason(attributes)
    values = asdict(reason)
    if len(result) + len(_NAMES) <= ATTRIBUTES_MAX:
        for field, name in _NAMES.items():
            kind = "Number" if field == "receive_count" else "String"
            result[name] = {"DataType": kind, "StringValue": str(values[field])}
    elif len(result) < ATTRIBUTES_MAX:
        result[PACKED_ATTRIBUTE] = {"DataType": "String", "StringValue": json.dumps(values, separators=(",", ":"))}
    return result


def without_reason(attributes: Mapping[str, Any]) -> Attributes:
    """The message's own attributes, as a redrive sends them."""
    return {name: value for name, value in attributes.items() if name not in REASON_ATTRIBUTES}


def reason_of(attributes: Mapping[str, Any]) -> DeadLetterReason | None:
    """The reason that `with_reason` left, in either form; none where there is none or it is not readable."""
    values: dict[str, Any] = {
        field: attributes[name].get("StringValue") for field, name in _NAMES.items() if name in attributes
    }
    try:
        if not values and PACKED_ATTRIBUTE in attributes:
            values = json.loads(attributes[PACKED_ATTRIBUTE]["StringValue"])
        return DeadLetterReason(
            error_class=str(values["error_class"]),
            code=str(values["code"]),
            queue=str(values["queue"]),
            message_id=str(values["message_id"]),
            receive_count=int(values["receive_count"]),
        )
    except (KeyError, TypeError, ValueError):
        return None
