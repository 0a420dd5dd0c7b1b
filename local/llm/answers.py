"""Answers made from a JSON schema and the material of the prompt: always valid, always the same, never canned."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from local.llm.text import digest, fraction, heading, keywords, material, sentences

MAX_ITEMS: Final = 5
LOWEST: Final = 0.35
SPREAD: Final = 0.55
"""Scores lie between, as a share of their range."""

_QUOTE = re.compile(r"quote|evidence|excerpt|citation|verbatim", re.IGNORECASE)
_VERDICT = re.compile(r"recommendation|verdict|decision", re.IGNORECASE)
_KEYWORD = re.compile(r"keyword|tag|topic|term", re.IGNORECASE)
_QUESTION = re.compile(r"question", re.IGNORECASE)
_TITLE = re.compile(r"title|headline|heading", re.IGNORECASE)
_LONG = re.compile(r"summary|abstract|overview|rationale|reason|justification|explanation|comment|feedback|note", re.I)

_QUESTIONS: Final = (
    "What does this say about {0}?",
    "How are {0} and {1} related?",
    "When does {0} matter for {1}?",
    "Why is {0} important here?",
    "What should a reader know about {0} before using {1}?",
)


def answer(schema: Mapping[str, Any], prompt: str) -> str:
    """JSON text valid under `schema`; scores, quotes and words come from `prompt`."""
    writer = _Writer(schema, prompt)
    return json.dumps(writer.value(schema, ()), ensure_ascii=False)


def prose(prompt: str) -> str:
    """An answer where no schema was asked for."""
    return _Writer({}, prompt).summary(())


class _Writer:
    def __init__(self, root: Mapping[str, Any], prompt: str) -> None:
        self.root = root
        self.text = material(prompt)
        self.seed = digest(self.text)
        self.keywords = keywords(self.text) or ["this text"]
        spoken = sentences(self.text)
        self.sentences = [line for line in spoken if 40 <= len(line) <= 240] or spoken or [self.text[:200].strip()]
        # How good an interview looks depends on the whole of it, so that the scores of one report agree roughly.
        self.level = LOWEST + SPREAD * fraction(self.seed)

    def value(self, node: Mapping[str, Any], path: tuple[str, ...]) -> Any:
        schema = self._resolved(node)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return self._choice(schema["enum"], path)
        if "anyOf" in schema:
            branches = [self._resolved(branch) for branch in schema["anyOf"]]
            return self.value(next((one for one in branches if one.get("type") != "null"), branches[0]), path)
        kind = schema.get("type", "object" if "properties" in schema else "string")
        if isinstance(kind, list):
            kind = next((one for one in cast(list[str], kind) if one != "null"), "null")
        match kind:
            case "object":
                properties: Mapping[str, Any] = schema.get("properties", {})
                return {name: self.value(child, (*path, name)) for name, child in properties.items()}
            case "array":
                return self._array(schema, path)
            case "integer":
                return self._integer(schema, path)
            case "number":
                low, high = _bounds(schema)
                return round(low + (high - low) * self._fraction(path), 2)
            case "boolean":
                return self._fraction(path) >= 0.5
            case "null":
                return None
            case _:
                return self._string(schema, path)

    def summary(self, path: tuple[str, ...]) -> str:
        """Two sentences that carry many of the frequent words, in the order of the text."""
        top = set(self.keywords[:12])
        ranked = sorted(
            range(len(self.sentences)),
            key=lambda i: (-len(top & set(self.sentences[i].lower().split())), fraction(f"{path}{i}")),
        )
        return " ".join(self.sentences[i] for i in sorted(ranked[:2]))

    def _resolved(self, node: Mapping[str, Any]) -> Mapping[str, Any]:
        while "$ref" in node:
            target = str(node["$ref"])
            if target == "#":
                node = self.root
            else:
                for part in target.removeprefix("#/").split("/"):
                    node = (self.root if part in ("$defs", "definitions") else node)[part]
        return node

    def _array(self, schema: Mapping[str, Any], path: tuple[str, ...]) -> list[Any]:
        least = int(schema.get("minItems", 0))
        most = int(schema.get("maxItems", max(least, MAX_ITEMS)))
        items = self._resolved(schema["items"])
        wanted = max(least, min(most, 3 if items.get("type") != "object" else MAX_ITEMS))
        choices = self._first_enum(items)
        if choices is not None and most >= len(choices):
            # A list of objects about named things (competencies) speaks of each of them once.
            name, values = choices
            wanted = max(least, len(values))
            made = [self.value(items, (*path, str(index))) for index in range(wanted)]
            return [{**item, name: values[index % len(values)]} for index, item in enumerate(made)]
        made = [self.value(items, (*path, str(index))) for index in range(wanted)]
        unique = list({json.dumps(item, sort_keys=True): item for item in made}.values())
        return unique if len(unique) >= least else made

    def _first_enum(self, items: Mapping[str, Any]) -> tuple[str, list[Any]] | None:
        for name, child in cast(Mapping[str, Any], items.get("properties", {})).items():
            values = self._resolved(child).get("enum")
            if values is not None:
                return name, values
            return None
        return None

    def _integer(self, schema: Mapping[str, Any], path: tuple[str, ...]) -> int:
        low, high = _bounds(schema)
        value = round(low + (high - low) * self._fraction(path))
        return max(int(-(-low // 1)), min(int(high // 1), value))

    def _string(self, schema: Mapping[str, Any], path: tuple[str, ...]) -> str:
        field = next((part for part in reversed(path) if not part.isdigit()), "")
        index = int(path[-1]) if path and path[-1].isdigit() else 0
        if schema.get("format") == "date-time":
            text = "2026-01-01T00:00:00Z"
        elif schema.get("format") == "date":
            text = "2026-01-01"
        elif _QUOTE.search(field):
            text = self._pick(self.sentences, path)
        elif _QUESTION.search(field):
            text = self._question(index)
        elif _KEYWORD.search(field):
            text = self.keywords[index % len(self.keywords)]
        elif _TITLE.search(field):
            text = heading(self.text) or " ".join(self.sentences[0].split()[:9]).rstrip(".,;:!?")
        elif _LONG.search(field):
            text = self.summary(path)
        else:
            text = f"Speaks of {', '.join(self._some_keywords(path))}: {self._pick(self.sentences, path)}"
        return _fitted(text, schema)

    def _choice(self, values: Sequence[Any], path: tuple[str, ...]) -> Any:
        if path and _VERDICT.search(path[-1]):
            # Listed from best to worst; a verdict agrees with the scores beside it.
            return values[min(len(values) - 1, int((1 - (self.level - LOWEST) / SPREAD) * len(values)))]
        return self._pick(values, path)

    def _question(self, index: int) -> str:
        first = self.keywords[index % len(self.keywords)]
        second = self.keywords[(index + 1) % len(self.keywords)]
        return _QUESTIONS[index % len(_QUESTIONS)].format(first, second)

    def _some_keywords(self, path: tuple[str, ...]) -> list[str]:
        start = int(fraction(f"{self.seed}{path}") * max(1, len(self.keywords) - 3))
        return self.keywords[start : start + 3]

    def _pick(self, values: Sequence[Any], path: tuple[str, ...]) -> Any:
        return values[min(len(values) - 1, int(fraction(f"{self.seed}{path}") * len(values)))]

    def _fraction(self, path: tuple[str, ...]) -> float:
        return min(1.0, max(0.0, self.level + 0.3 * (fraction(f"{self.seed}{path}") - 0.5)))


def _bounds(schema: Mapping[str, Any]) -> tuple[float, float]:
    low = schema.get("minimum", schema.get("exclusiveMinimum", 0))
    if "exclusiveMinimum" in schema:
        low = schema["exclusiveMinimum"] + 1
    high = schema.get("maximum", max(low, 100))
    if "exclusiveMaximum" in schema:
        high = schema["exclusiveMaximum"] - 1
    return float(low), float(max(low, high))


def _fitted(text: str, schema: Mapping[str, Any]) -> str:
    most = schema.get("maxLength")
    if most is not None and len(text) > most:
        text = text[:most].rstrip() or text[:most]
    least = int(schema.get("minLength", 0))
    return text if len(text) >= least else text.ljust(least, ".")
