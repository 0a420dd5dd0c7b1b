"""The message attributes that travel with a dead letter: why it died, where it came from, how often it was moved back.

SQS allows ten attributes a message (SQS guide, quotas-messages); a producer sets one, these make six.
"""

from typing import Final

MAX_MESSAGE_ATTRIBUTES: Final = 10

ERROR_CLASS: Final = "errorClass"
ERROR_CODE: Final = "errorCode"
ORIGINAL_MESSAGE_ID: Final = "originalMessageId"
"""Id under which the consumer saw the message; a message that is sent again gets a new one."""
RECEIVE_COUNT: Final = "receiveCount"
REDRIVE_COUNT: Final = "redriveCount"
"""How often an operator moved the message back."""

REASON_ATTRIBUTES: Final = (ERROR_CLASS, ERROR_CODE, ORIGINAL_MESSAGE_ID, RECEIVE_COUNT)
"""Dropped when the message is moved back: they speak of a death that is over."""
