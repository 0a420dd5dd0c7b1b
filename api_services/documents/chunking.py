"""Cutting a text into chunks: whole blocks of its structure, bounded hard, stable where the text did not change."""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from api_services.documents.blocks import Block, blocks_of
from api_services.documents.models import DocumentFormat

MAX_CHUNK_TOKENS: Final = 2_048
"""Never passed, whatever the text: the embedding API refuses inputs of more than 8,192."""

TARGET_TOKENS: Final = 1_500
MIN_TOKENS: Final = 800

_CUT_EVERY: Final = 3
"""One block in so many ends a chunk that has its minimum, by the block's own hash."""

_MAX_HEADING_TOKENS: Final = 300
_MAX_PATH: Final = 4


def token_bound(text: str) -> int:
    """The most tokens `text` can have in any byte-level encoding, OpenAI's included: its bytes in UTF-8.

    English has about a quarter of it. The exact count needs a vocabulary that its library downloads when it runs.
    """
    return len(text) if text.isascii() else len(text.encode("utf-8"))


@dataclass(frozen=True, slots=True)
class Chunk:
    """`text` is `source[start:end]` without blank edges; offsets count code points of the normalised text.

    `heading` is the path of headings above its beginning, `section` the last of them. Only the section counts for
    `content_hash`: were it the path, a new title at the top would make every chunk new.
    """

    number: int
    start: int
    end: int
    heading: str
    section: str
    text: str
    content_hash: str

    @property
    def embedded_text(self) -> str:
        """What is embedded and enriched: the text under its section's heading."""
        return f"{self.section}\n\n{self.text}" if self.section else self.text


def chunk(text: str, document_format: DocumentFormat, *, max_tokens: int = MAX_CHUNK_TOKENS) -> list[Chunk]:
    """Cut normalised `text`; blank parts are left out, every other character is in exactly one chunk.

    A chunk ends before a heading or after a block chosen by that block's hash once it has its minimum, so an edit
    changes the chunk it is in and at times the next, never all that follow.
    """
    # The section's heading is embedded with the text, so both together keep the bound.
    heading_room = min(_MAX_HEADING_TOKENS, max_tokens // 4)
    room = max_tokens - heading_room - len("\n\n") if heading_room else max_tokens
    minimum, target = min(MIN_TOKENS, room // 2), min(TARGET_TOKENS, room)
    chunks: list[Chunk] = []
    pending: list[Block] = []
    size = 0
    path: list[tuple[int, str]] = []
    above: list[str] = []

    def close() -> None:
        nonlocal size
        if pending:
            made = _chunk(len(chunks), text, pending[0].start, pending[-1].end, above, heading_room)
            if made is not None:
                chunks.append(made)
        pending.clear()
        size = 0

    for block in _bounded(text, document_format, room):
        weight = token_bound(text[block.start : block.end])
        full = size + weight > room or size >= target
        if pending and (full or (size >= minimum and _cuts(text, pending[-1], block))):
            close()
        if block.heading_level:
            path = [(level, title) for level, title in path if level < block.heading_level]
            path.append((block.heading_level, block.heading_title))
        if not pending:
            above = [title for _, title in path]
        pending.append(block)
        size += weight
    close()
    return chunks


def _cuts(text: str, before: Block, after: Block) -> bool:
    if after.heading_level:
        return True
    digest = hashlib.blake2b(text[before.start : before.end].strip().encode(), digest_size=4).digest()
    return int.from_bytes(digest, "big") % _CUT_EVERY == 0


def _chunk(number: int, text: str, start: int, end: int, above: list[str], heading_room: int) -> Chunk | None:
    inside = text[start:end]
    stripped = inside.strip()
    if not stripped:
        return None
    start += inside.index(stripped)
    section = _cut_to(above[-1], heading_room) if above else ""
    path = " > ".join(_cut_to(title, _MAX_HEADING_TOKENS) for title in above[-_MAX_PATH:])
    digest = hashlib.sha256(f"{section}\n\n{stripped}".encode()).hexdigest()
    return Chunk(number, start, start + len(stripped), path, section, stripped, digest)


def _cut_to(title: str, max_tokens: int) -> str:
    if token_bound(title) > max_tokens:
        title = title[: _fitting(title, 0, len(title), max_tokens)].strip()
    return title if token_bound(title) <= max_tokens else ""


def _bounded(text: str, document_format: DocumentFormat, room: int) -> Iterator[Block]:
    """Blocks that each fit `room`: those too long are cut at a line's, sentence's or word's end, else a grapheme's."""
    for block in blocks_of(text, document_format):
        start = block.start
        level, title = block.heading_level, block.heading_title
        # A character has at least one byte: more than `room` of them need no count, which keeps long blocks linear.
        while block.end - start > room or token_bound(text[start : block.end]) > room:
            cut = _fitting(text, start, block.end, room)
            yield Block(start, cut, level, title)
            # The rest of an over-long heading is text below it.
            start, level, title = cut, 0, ""
        yield Block(start, block.end, level, title)


_BREAKS: Final = (re.compile(r"\n"), re.compile("[.!?\u3002\uff01\uff1f]\\s"), re.compile(r"\s"))


def _fitting(text: str, start: int, end: int, room: int) -> int:
    """The best place to cut so that `text[start:cut]` has at most `room` bytes and at least one character."""
    last = start
    used = 0
    for position in range(start, min(end, start + room)):
        used += _utf8_length(text[position])
        if used > room:
            break
        last = position + 1
    window = text[start:last]
    for pattern in _BREAKS:
        found = [match.end() for match in pattern.finditer(window, len(window) // 2)]
        if found and not _joins(text, start + found[-1]):
            return start + found[-1]
    return _grapheme_boundary(text, start, last, end)


def _joins(text: str, position: int) -> bool:
    """A mark at `position` belongs to the character before."""
    import regex

    return position < len(text) and len(regex.findall(r"\X", text[position - 1 : position + 1])) == 1


def _grapheme_boundary(text: str, start: int, last: int, end: int) -> int:
    """The last boundary of a grapheme cluster in `start..last`; where one cluster alone is longer, `last` itself."""
    import regex

    # What follows decides whether the last cluster is whole: a few characters more are looked at.
    window = text[start : min(end, last + 64)]
    boundary = 0
    for match in regex.finditer(r"\X", window):
        if start + match.end() > last:
            break
        boundary = match.end()
    return start + boundary if boundary else max(last, start + 1)


def _utf8_length(character: str) -> int:
    code = ord(character)
    if code < 0x80:
        return 1
    if code < 0x800:
        return 2
    return 3 if code < 0x10000 else 4
