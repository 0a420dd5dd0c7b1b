"""Words, sentences and token counts: the little linguistics the answers and embeddings rest on."""

import hashlib
import math
import re
from collections import Counter
from typing import Final

STOPWORDS: Final = frozenset(
    """a about after again all also am an and any are as at be because been before being between both but by can could
    did do does doing done down during each even few for from get go got had has have having he her here hers him his
    how i if in into is it its just know like made make me more most much my no nor not now of off on once one only or
    other our out over own really said same say see she should so some such than that the their them then there these
    they thing things think this those through time to too two under until up us use used using very was way we well
    went were what when where which while who why will with would yeah yes you your""".split()  # noqa: SIM905  (a list of one word a line would be a page)
)

_PIECES = re.compile(r"[A-Za-z0-9]+|[^\sA-Za-z0-9]+")
_WORD = re.compile(r"[^\W_]+", re.UNICODE)
_TAGGED = re.compile(r"<([a-zA-Z][\w-]*)>\s*(.*?)\s*</\1>", re.DOTALL)
_SPEAKER = re.compile(r"^\s*(?:\[[^\]\n]{1,20}\]\s*)?(?:\*\*)?([A-Za-z][\w .'()-]{0,30}?)(?:\*\*)?\s*:\s+(?:\*\*)?\s*")
_SENTENCE_END = re.compile(r"(?<=[.!?…])[\"'\u201d\u2019)]*\s+")


def digest(text: str) -> str:
    """SHA-256 of `text` in hex: the content hash of `GET /_control/calls`."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def fraction(seed: str) -> float:
    """A number in [0, 1) that depends on `seed` alone."""
    return int(digest(seed)[:13], 16) / 16**13


def count_tokens(text: str) -> int:
    """About what a byte-pair tokenizer counts; exact for nothing, the same every time."""
    total = 0
    for piece in _PIECES.findall(text):
        if piece.isascii():
            total += math.ceil(len(piece) / 6) if piece[0].isalnum() else math.ceil(len(piece) / 2)
        else:
            total += math.ceil(len(piece.encode("utf-8", "surrogatepass")) / 2)
    return total


def words(text: str) -> list[str]:
    """Lower-case words, stopwords included."""
    return _WORD.findall(text.lower())


def material(prompt: str) -> str:
    """What an answer is about: the longest `<tag>...</tag>` body of the prompt, else the whole prompt."""
    bodies = [match.group(2) for match in _TAGGED.finditer(prompt)]
    longest = max(bodies, key=len, default="")
    return longest or prompt


def keywords(text: str) -> list[str]:
    """Content words, the most frequent first; ties in order of appearance."""
    counts = Counter(word for word in words(text) if len(word) > 3 and word not in STOPWORDS and not word.isdigit())
    return [word for word, _ in counts.most_common(40)]


def sentences(text: str) -> list[str]:
    """Verbatim sentences of `text`: the candidate's where lines name who speaks, else all but headings and markup."""
    all_lines: list[str] = []
    candidates: list[str] = []
    for line in text.splitlines():
        speaker = _SPEAKER.match(line)
        spoken = (line[speaker.end() :] if speaker else line).strip()
        if not spoken or spoken[0] in "#=-|`>{":
            continue
        all_lines.append(spoken)
        if speaker and speaker.group(1).strip().lower() == "candidate":
            candidates.append(spoken)
    return [part.strip() for line in candidates or all_lines for part in _SENTENCE_END.split(line) if part.strip()]


def heading(text: str) -> str | None:
    """The first Markdown heading's text, if there is one."""
    match = re.search(r"^#{1,6}\s+(.+?)\s*#*\s*$", text, re.MULTILINE)
    return match.group(1) if match else None
