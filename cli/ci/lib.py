"""The one comment on a pull request: what its previews would do to each stage, losses first."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from api_services.errors import InvalidInputError

MARKER: Final = "<!-- sophia-preview -->"
"""First line of the comment; by it the next run finds the comment to replace."""

COMMENT_MAX: Final = 65_000
"""GitHub refuses a comment of more than 65,536 characters."""

_LISTED: Final = 60
_REPLACED: Final = "replace"
_DELETED: Final = "delete"
_QUIET: Final = frozenset({"same", "read", "refresh", "create-replacement", "delete-replaced", "discard-replaced"})


class Step(BaseModel):
    """One step of `pulumi preview --json`; values are never read, they may be secret."""

    model_config = ConfigDict(alias_generator=to_camel, frozen=True)

    op: str
    urn: str
    diff_reasons: tuple[str, ...] | None = None
    replace_reasons: tuple[str, ...] | None = None
    detailed_diff: dict[str, Any] | None = None

    @property
    def name(self) -> str:
        return self.urn.rsplit("::", 1)[-1]

    @property
    def type(self) -> str:
        parts = self.urn.split("::")
        return parts[2].rsplit("$", 1)[-1] if len(parts) > 3 else ""

    @property
    def changed(self) -> list[str]:
        """Names of the properties that differ."""
        return sorted({*(self.replace_reasons or ()), *(self.diff_reasons or ()), *(self.detailed_diff or {})})


class Diagnostic(BaseModel):
    message: str
    severity: str


class Preview(BaseModel):
    """What `pulumi preview --json` wrote."""

    steps: tuple[Step, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    error: Annotated[str | None, Field(description="set where the preview did not get as far as a plan")] = None

    @property
    def replaced(self) -> list[Step]:
        return [step for step in self.steps if step.op == _REPLACED]

    @property
    def deleted(self) -> list[Step]:
        return [step for step in self.steps if step.op == _DELETED]

    @property
    def others(self) -> list[Step]:
        return [step for step in self.steps if step.op not in {*_QUIET, _REPLACED, _DELETED}]

    @property
    def errors(self) -> list[str]:
        found = [" ".join(one.message.split()) for one in self.diagnostics if one.severity == "error"]
        return [*([self.error] if self.error else []), *found]


@dataclass(frozen=True, slots=True)
class StagePreview:
    """`against_state` is false for an offline preview, which shows every resource as new."""

    stage: str
    preview: Preview
    against_state: bool = True


def read_preview(path: Path) -> Preview:
    """Read one preview. A file without a plan is a preview that failed, not an error of this command."""
    try:
        content = path.read_text()
    except FileNotFoundError as exc:
        raise InvalidInputError(f"There is no preview at {path}.", code="preview_missing") from exc
    try:
        return Preview.model_validate(json.loads(content))
    except (json.JSONDecodeError, ValidationError):
        return Preview(error="the preview wrote no plan; see the log of its job")


def render(previews: Sequence[StagePreview], commit: str = "") -> str:
    """Markdown of the comment: losses, then a line per stage, then the details folded away."""
    ordered = sorted(previews, key=lambda one: (one.stage != "prod", one.stage))
    lines = [MARKER, f"### {_headline(ordered)}", ""]
    lines += [f"- {line}" for one in ordered for line in _losses(one)]
    lines += [f"- **{one.stage}** failed: {_text(error)}" for one in ordered for error in one.preview.errors]
    lines += ["", "| stage | replaced | deleted | updated | created | other |", "|---|---:|---:|---:|---:|---:|"]
    lines += [_row(one) for one in ordered]
    for one in ordered:
        lines += _details(one)
    if commit:
        lines += ["", f"Commit {_code(commit[:12])}."]
    return _cut("\n".join(lines) + "\n")


def _headline(previews: Sequence[StagePreview]) -> str:
    failed = [one.stage for one in previews if one.preview.errors]
    real = [one.preview for one in previews if one.against_state]
    losses = [
        f"{count} {word}"
        for count, word in (
            (sum(len(preview.replaced) for preview in real), "replaced"),
            (sum(len(preview.deleted) for preview in real), "deleted"),
        )
        if count
    ]
    parts = [f"the preview of {', '.join(failed)} failed"] if failed else []
    if losses:
        parts.insert(0, ", ".join(losses))
    if not parts:
        parts = ["nothing is replaced or deleted"] if real else ["previewed without an account"]
    return "Preview: " + "; ".join(parts)


def _losses(one: StagePreview) -> list[str]:
    if not one.against_state:
        return []
    lines = [
        f"**{one.stage}** replaces {_resource(step)}" + (f", for {_names(step.changed)}" if step.changed else "")
        for step in one.preview.replaced
    ]
    lines += [f"**{one.stage}** deletes {_resource(step)}" for step in one.preview.deleted]
    return _listed(lines)


def _row(one: StagePreview) -> str:
    counts = Counter(step.op for step in one.preview.steps if step.op not in _QUIET)
    named = ("replace", "delete", "update", "create")
    other = sum(count for op, count in counts.items() if op not in named)
    stage = one.stage if one.against_state else f"{one.stage} (as if new)"
    return f"| {stage} | {' | '.join(str(counts[op]) for op in named)} | {other} |"


def _details(one: StagePreview) -> list[str]:
    steps = one.preview.others
    if not steps or not one.against_state:
        return []
    lines = [
        f"- {step.op} {_resource(step)}" + (f": {_names(step.changed)}" if step.op == "update" and step.changed else "")
        for step in sorted(steps, key=lambda step: (step.op != "update", step.op, step.name))
    ]
    return ["", f"<details><summary>{one.stage}: {len(steps)} more</summary>", "", *_listed(lines), "", "</details>"]


def _listed(lines: Sequence[str]) -> list[str]:
    rest = len(lines) - _LISTED
    return [*lines[:_LISTED], f"- and {rest} more; see the log of the job"] if rest > 0 else list(lines)


def _resource(step: Step) -> str:
    return f"{_code(step.name)} ({_code(step.type)})"


def _names(names: Sequence[str]) -> str:
    return ", ".join(_code(name) for name in names[:12]) + (" and more" if len(names) > 12 else "")


def _code(text: str) -> str:
    return "`" + _text(text).replace("`", "'") + "`"


def _text(text: str) -> str:
    # A mention or a link in a resource's name must not become one in the comment.
    plain = "".join(character for character in text if character.isprintable())[:300]
    return plain.replace("@", "@\u200b").replace("<", "(").replace(">", ")").replace("|", "/")


def _cut(text: str) -> str:
    if len(text) <= COMMENT_MAX:
        return text
    return text[: COMMENT_MAX - 60].rsplit("\n", 1)[0] + "\n\nCut short; see the log of the job.\n"


def previews_of(files: Mapping[str, Path], *, against_state: bool) -> list[StagePreview]:
    """Read previews by stage."""
    return [StagePreview(stage, read_preview(path), against_state) for stage, path in files.items()]
