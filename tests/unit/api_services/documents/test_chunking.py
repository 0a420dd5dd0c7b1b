import re

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from api_services.documents.chunking import MAX_CHUNK_TOKENS, Chunk, chunk, token_bound
from api_services.documents.models import DocumentFormat
from api_services.documents.normalise import normalise, normalise_text

MARKDOWN, RST, TEXT = DocumentFormat.MARKDOWN, DocumentFormat.RST, DocumentFormat.TEXT

pieces = st.one_of(
    st.sampled_from(
        [
            "\n",
            "\n\n",
            "# One\n",
            "## Two words\n",
            "Title\n=====\n",
            "====\nOver\n====\n",
            "```\ncode\n```\n",
            "~~~\n",
            "| a | b |\n|---|---|\n| 1 | 2 |\n",
            ".. note::\n\n   indented\n",
            "- item\n",
            " ",
            "\t",
            "word " * 40,
            "\U0001f469\u200d\U0001f4bb",
            "e\u0301",
            "\u1100\u1161\u11a8",
            "\U0001f1f5\U0001f1f9",
            "字" * 30,
        ]
    ),
    st.text(max_size=40),
)
documents = st.lists(pieces, max_size=60).map("".join).map(lambda text: normalise_text(text).text)


def ink(text: str) -> str:
    return "".join(text.split())


def check(text: str, chunks: list[Chunk], max_tokens: int) -> None:
    assert ink("".join(c.text for c in chunks)) == ink(text), "every character that is not blank is in one chunk"
    assert [c.number for c in chunks] == list(range(len(chunks)))
    for each in chunks:
        assert each.text.strip() == each.text != ""
        assert text[each.start : each.end] == each.text
        assert token_bound(each.embedded_text) <= max_tokens


@settings(max_examples=60, deadline=None)
@given(documents, st.sampled_from(list(DocumentFormat)), st.integers(40, 400))
def test_chunks_cover_the_text_within_the_cap(text: str, document_format: DocumentFormat, max_tokens: int) -> None:
    check(text, chunk(text, document_format, max_tokens=max_tokens), max_tokens)


@settings(max_examples=40, deadline=None)
@given(documents, st.integers(120, 400))
def test_no_cut_is_inside_a_grapheme(text: str, max_tokens: int) -> None:
    boundaries = {0} | {match.end() for match in regex.finditer(r"\X", text)}
    longest = max((token_bound(cluster) for cluster in regex.findall(r"\X", text)), default=0)
    if longest > max_tokens // 2:
        return
    for each in chunk(text, TEXT, max_tokens=max_tokens):
        assert each.start in boundaries
        assert each.end in boundaries


@pytest.mark.parametrize("limit", range(5, 41))
def test_a_cut_at_any_place_leaves_text_that_every_store_takes(limit: int) -> None:
    raw = "A" * (limit - 1) + "\U0001f469\u200d\U0001f4bb" + "e\u0301" + "\u0000" + "\x0b" + "\ud83d" + "end"
    clean = normalise_text(raw)
    assert (clean.surrogates_replaced, clean.controls_replaced) == (1, 2)
    chunks = chunk(clean.text, MARKDOWN, max_tokens=limit)
    check(clean.text, chunks, limit)
    joined = "".join(c.text for c in chunks)
    joined.encode()
    assert joined.count("\ufffd") == 1
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f]", joined)


@pytest.mark.parametrize("text", ["", "\n \t\n"])
def test_a_blank_text_has_no_chunks(text: str) -> None:
    assert chunk(text, MARKDOWN) == []


def test_headings_without_a_body_are_kept() -> None:
    text = "# One\n\n## Two\n\n## Three\n"
    chunks = chunk(text, MARKDOWN)
    check(text, chunks, MAX_CHUNK_TOKENS)
    assert len(chunks) == 1


def test_a_line_of_sixty_thousand_characters_without_a_space_is_cut_hard() -> None:
    text = "x" * 60_000
    chunks = chunk(text, MARKDOWN)
    check(text, chunks, MAX_CHUNK_TOKENS)
    assert len(chunks) >= 60_000 // MAX_CHUNK_TOKENS


def test_a_table_of_four_hundred_rows_is_cut_between_rows() -> None:
    text = "| name | value |\n|---|---|\n" + "".join(f"| row {n} | value of row {n} |\n" for n in range(400))
    chunks = chunk(text, MARKDOWN)
    check(text, chunks, MAX_CHUNK_TOKENS)
    assert all(c.text.startswith("|") and c.text.endswith("|") for c in chunks)


@pytest.mark.parametrize(
    "cluster", ["\U0001f469\u200d\U0001f4bb", "e\u0301", "\u1100\u1161\u11a8", "\U0001f1f5\U0001f1f9"]
)
@pytest.mark.parametrize("max_tokens", [101, 102, 103, 104, 105, 106, 107])
def test_text_without_a_blank_is_cut_between_clusters(cluster: str, max_tokens: int) -> None:
    text = cluster * 150
    chunks = chunk(text, TEXT, max_tokens=max_tokens)
    check(text, chunks, max_tokens)
    assert all(each.text == cluster * (len(each.text) // len(cluster)) for each in chunks)


def test_a_cluster_longer_than_the_cap_is_cut_between_code_points() -> None:
    text = "a" + "\u0301" * 5_000
    check(text, chunk(text, TEXT), MAX_CHUNK_TOKENS)


def test_code_in_a_fence_is_no_heading() -> None:
    text = "# Top\n\n```sh\n# not a heading\n```\n\nafter\n"
    (only,) = chunk(text, MARKDOWN)
    assert only.heading == "Top"


def section(number: int, words: str = "") -> str:
    sentences = " ".join(f"Sentence {i} of section {number} says something of its own." for i in range(18))
    return f"## Section {number}\n\n{sentences}{words}\n\n"


def test_the_path_of_headings_is_kept_and_a_new_one_leaves_its_level() -> None:
    text = "# Guide\n\n" + section(1) + "### Detail\n\n" + "Deep text. " * 90 + "\n\n" + section(2)
    headings = [c.heading for c in chunk(text, MARKDOWN)]
    assert headings[0] == "Guide"
    assert "Guide > Section 1 > Detail" in headings
    assert headings[-1] == "Guide > Section 2"


def test_rst_headings_take_their_level_from_their_style() -> None:
    body = "Some text of the section. " * 40
    titles = ("=====\nGuide\n=====", "First\n-----", "Deeper\n~~~~~~", "Second\n------")
    text = "".join(f"{title}\n\n{body}\n\n" for title in titles)
    headings = [c.heading for c in chunk(text, RST)]
    assert headings == ["Guide", "Guide > First", "Guide > First > Deeper", "Guide > Second"]


def test_an_edit_changes_its_own_chunk_and_no_later_one() -> None:
    before = "".join(section(n) for n in range(12))
    after = "".join(section(n, " And one sentence more." if n == 5 else "") for n in range(12))
    old = {c.content_hash for c in chunk(before, MARKDOWN)}
    new = [c for c in chunk(after, MARKDOWN) if c.content_hash not in old]
    assert len(new) == 1


def test_a_new_title_at_the_top_changes_one_chunk() -> None:
    text = "# Old title\n\n" + "".join(section(n) for n in range(12))
    old = {c.content_hash for c in chunk(text, MARKDOWN)}
    new = [c for c in chunk(text.replace("Old title", "New title"), MARKDOWN) if c.content_hash not in old]
    assert len(new) == 1


def test_edits_in_text_without_headings_stay_near() -> None:
    paragraphs = [f"Paragraph {n}: " + " ".join(f"w{n}x{i}" for i in range(60)) for n in range(60)]
    old = chunk("\n\n".join(paragraphs), TEXT)
    changed: list[int] = []
    for edited in range(0, 60, 7):
        copy = list(paragraphs)
        copy[edited] += " with an addition at its end"
        known = {c.content_hash for c in old}
        changed.append(sum(c.content_hash not in known for c in chunk("\n\n".join(copy), TEXT)))
    assert sum(changed) / len(changed) <= 3
    assert max(changed) < len(old) / 2


def test_line_ends_and_a_byte_order_mark_make_no_difference() -> None:
    text = "# One\n\ntext here\n"
    other = normalise(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    assert [c.content_hash for c in chunk(other.text, MARKDOWN)] == [c.content_hash for c in chunk(text, MARKDOWN)]
