"""Text as every store behind takes it: decodable, without NUL, control characters or halves of surrogate pairs."""

import re
from dataclasses import dataclass
from typing import Final

from api_services.documents.errors import MalformedDocumentError

_SURROGATES: Final = re.compile("[\ud800-\udfff]")
_CONTROLS: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
"""What SQS refuses in a message and NUL, which ends a string in some stores; tab, LF and CR are fine."""


@dataclass(frozen=True, slots=True)
class NormalisedText:
    """The text, and how many characters had to be replaced in it."""

    text: str
    surrogates_replaced: int
    controls_replaced: int


def normalise_text(text: str) -> NormalisedText:
    """Surrogate halves become U+FFFD, control characters a space, line ends LF; length in code points may shrink."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").removeprefix("\ufeff")
    text, surrogates = _SURROGATES.subn("\ufffd", text)
    text, controls = _CONTROLS.subn(" ", text)
    return NormalisedText(text, surrogates, controls)


def normalise(content: bytes) -> NormalisedText:
    """Decode UTF-8 and normalise. Raises `MalformedDocumentError` where it isn't UTF-8, naming the first bad byte."""
    try:
        # Surrogate halves reach us from JSON strings that were cut; they can be repaired, other bytes can't.
        text = content.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as exc:
        raise MalformedDocumentError(
            f"the document is not UTF-8 text (byte {exc.start:,}); convert it and upload it again", code="not_utf8"
        ) from exc
    return normalise_text(text)
