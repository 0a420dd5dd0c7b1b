"""The blocks a text consists of: headings, paragraphs, fenced code, tables. Together they are the whole text."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from api_services.documents.models import DocumentFormat


@dataclass(frozen=True, slots=True)
class Block:
    """A half-open range of the text; `heading_level` is 0 where it is no heading."""

    start: int
    end: int
    heading_level: int = 0
    heading_title: str = ""


_ATX: Final = re.compile(r" {0,3}(#{1,6})[ \t]+(\S.*?)[ \t]*#*[ \t]*$")
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})")
_UNDERLINE: Final = re.compile(r"([=\-~^\"'`:.*+#_<>])\1{2,}[ \t]*$")
_SETEXT: Final = re.compile(r" {0,3}(=+|-{2,})[ \t]*$")
_INDENTED: Final = re.compile(r"[ \t]+\S")


def blocks_of(text: str, document_format: DocumentFormat) -> Iterator[Block]:
    """Blocks in order, without gaps: each line belongs to one, blank lines to the block before them."""
    if document_format is DocumentFormat.MARKDOWN:
        return _markdown(text)
    if document_format is DocumentFormat.RST:
        return _rst(text)
    return _paragraphs(text)


def _lines(text: str) -> list[tuple[int, str]]:
    lines: list[tuple[int, str]] = []
    start = 0
    for line in text.split("\n"):
        lines.append((start, line))
        start += len(line) + 1
    return lines


def _end(lines: list[tuple[int, str]], number: int, text: str) -> int:
    return lines[number][0] if number < len(lines) else len(text)


def _skip_blank(lines: list[tuple[int, str]], number: int) -> int:
    while number < len(lines) and not lines[number][1].strip():
        number += 1
    return number


def _markdown(text: str) -> Iterator[Block]:
    lines = _lines(text)
    number = 0
    while number < len(lines):
        first = number
        line = lines[number][1]
        level, title = 0, ""
        atx, fence = _ATX.match(line), _FENCE.match(line)
        if atx:
            level, title = len(atx[1]), atx[2]
            number += 1
        elif fence:
            number = _after_fence(lines, number + 1, fence[1])
        elif line.strip() and number + 1 < len(lines) and _SETEXT.match(lines[number + 1][1]) and "|" not in line:
            level, title = (1 if "=" in lines[number + 1][1] else 2), line.strip()
            number += 2
        else:
            number += 1
            while number < len(lines) and lines[number][1].strip() and not _starts_markdown(lines, number):
                number += 1
        number = _skip_blank(lines, number)
        yield Block(lines[first][0], _end(lines, number, text), level, title)


def _starts_markdown(lines: list[tuple[int, str]], number: int) -> bool:
    line = lines[number][1]
    return bool(_ATX.match(line) or _FENCE.match(line))


def _after_fence(lines: list[tuple[int, str]], number: int, fence: str) -> int:
    """The line after the closing fence; the end of the text where there is none."""
    closing = re.compile(rf" {{0,3}}{re.escape(fence[0])}{{{len(fence)},}}[ \t]*$")
    while number < len(lines):
        number += 1
        if closing.match(lines[number - 1][1]):
            break
    return number


def _rst(text: str) -> Iterator[Block]:
    lines = _lines(text)
    styles: list[str] = []
    number = 0
    while number < len(lines):
        first = number
        level, title = 0, ""
        heading = _rst_heading(lines, number)
        if heading is not None:
            style, title, number = heading
            if style not in styles:
                styles.append(style)
            level = styles.index(style) + 1
        else:
            number += 1
            while number < len(lines) and lines[number][1].strip() and _rst_heading(lines, number) is None:
                number += 1
        number = _skip_blank(lines, number)
        # The indented body of a directive or a literal block stays with the line that opens it.
        while level == 0 and number < len(lines) and _INDENTED.match(lines[number][1]):
            while number < len(lines) and lines[number][1].strip():
                if not _INDENTED.match(lines[number][1]) and _rst_heading(lines, number) is not None:
                    break
                number += 1
            number = _skip_blank(lines, number)
        yield Block(lines[first][0], _end(lines, number, text), level, title)


def _rst_heading(lines: list[tuple[int, str]], number: int) -> tuple[str, str, int] | None:
    """(style, title, next line) of a title underlined, or over- and underlined, that begins at this line."""
    line = lines[number][1]
    if not line.strip():
        return None
    following = lines[number + 1][1] if number + 1 < len(lines) else ""
    over = _UNDERLINE.match(line)
    if over and number + 2 < len(lines) and following.strip():
        under = lines[number + 2][1]
        if under.rstrip() == line.rstrip() and len(line.rstrip()) >= len(following.strip()):
            return over[1] * 2, following.strip(), number + 3
    under = _UNDERLINE.match(following)
    if under and not over and not line[0].isspace() and len(following.rstrip()) >= len(line.rstrip()):
        return under[1], line.strip(), number + 2
    return None


def _paragraphs(text: str) -> Iterator[Block]:
    lines = _lines(text)
    number = 0
    while number < len(lines):
        first = number
        number += 1
        while number < len(lines) and lines[number][1].strip():
            number += 1
        number = _skip_blank(lines, number)
        yield Block(lines[first][0], _end(lines, number, text))
