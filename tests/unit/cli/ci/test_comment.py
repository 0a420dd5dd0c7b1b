"""The comment on a pull request."""

import json
from pathlib import Path

import pytest

from api_services.errors import InvalidInputError
from cli.ci.lib import COMMENT_MAX, MARKER, Preview, StagePreview, Step, read_preview, render

URN = "urn:pulumi:{stage}::sophia::sophia:sqs:QueuePair$aws:sqs/queue:Queue::{name}"


def step(op: str, name: str, *reasons: str, stage: str = "prod") -> Step:
    urn = URN.format(stage=stage, name=name)
    return Step.model_validate({"op": op, "urn": urn, "replaceReasons": list(reasons) or None})


def preview(stage: str, *steps: Step, against_state: bool = True) -> StagePreview:
    return StagePreview(stage, Preview(steps=steps), against_state)


def test_what_is_replaced_or_deleted_comes_first() -> None:
    text = render(
        [
            preview("dev", step("create", "new-queue"), step("same", "old")),
            preview(
                "prod",
                step("update", "function"),
                step("create-replacement", "ingest", "fifoQueue"),
                step("replace", "ingest", "fifoQueue"),
                step("delete-replaced", "ingest", "fifoQueue"),
                step("delete", "ingest-dlq"),
            ),
        ],
        commit="0123456789abcdef",
    )
    lines = text.splitlines()
    assert lines[0] == MARKER
    assert lines[1] == "### Preview: 1 replaced, 1 deleted"
    assert lines[3:5] == [
        "- **prod** replaces `ingest` (`aws:sqs/queue:Queue`), for `fifoQueue`",
        "- **prod** deletes `ingest-dlq` (`aws:sqs/queue:Queue`)",
    ]
    assert "| prod | 1 | 1 | 1 | 0 | 0 |" in lines
    assert "| dev | 0 | 0 | 0 | 1 | 0 |" in lines
    assert lines.index("| prod | 1 | 1 | 1 | 0 | 0 |") < lines.index("| dev | 0 | 0 | 0 | 1 | 0 |")
    assert "Commit `0123456789ab`." in lines


def test_nothing_lost_is_said() -> None:
    assert "### Preview: nothing is replaced or deleted" in render([preview("dev", step("create", "a"))])


def test_a_preview_against_nothing_claims_no_losses() -> None:
    text = render([preview("prod", step("create", "a"), against_state=False)])
    assert "### Preview: previewed without an account" in text
    assert "| prod (as if new) | 0 | 0 | 0 | 1 | 0 |" in text
    assert "<details>" not in text


def test_a_failed_preview_is_said_with_its_error(tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text(
        json.dumps({"steps": [], "diagnostics": [{"message": "queue 'a':\n  too short", "severity": "error"}]})
    )
    text = render([StagePreview("dev", read_preview(tmp_path / "p.json"))])
    assert "### Preview: the preview of dev failed" in text
    assert "- **dev** failed: queue 'a': too short" in text


@pytest.mark.parametrize("content", ["", "error: no stack", '{"steps": 3}', "[]"])
def test_output_without_a_plan_is_a_failed_preview(tmp_path: Path, content: str) -> None:
    (tmp_path / "p.json").write_text(content)
    assert "failed: the preview wrote no plan" in render([StagePreview("dev", read_preview(tmp_path / "p.json"))])


def test_a_missing_file_is_an_error_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"no preview at .*nowhere\.json"):
        read_preview(tmp_path / "nowhere.json")


def test_values_never_reach_the_comment(tmp_path: Path) -> None:
    urn = URN.format(stage="dev", name="a")
    steps = [{"op": "update", "urn": urn, "diffReasons": ["policy"], "newState": {"inputs": {"policy": "s3cret"}}}]
    (tmp_path / "p.json").write_text(json.dumps({"steps": steps, "config": {"k": "s3cret"}}))
    text = render([StagePreview("dev", read_preview(tmp_path / "p.json"))])
    assert "`policy`" in text
    assert "s3cret" not in text


def test_names_cannot_become_markup_or_mentions() -> None:
    text = render([preview("dev", step("delete", "`</details>@everyone|\n# head"))])
    assert "@everyone" not in text
    assert "</details>" not in text
    assert "\n# head" not in text


def test_a_comment_never_passes_what_github_takes() -> None:
    many = [
        step("update", f"resource-{index}" + "x" * 250, *(f"property{n}" for n in range(40))) for index in range(500)
    ]
    text = render([preview(stage, *many) for stage in ("dev", "prod", "a", "b", "c", "d")])
    assert len(text) <= COMMENT_MAX


def test_hundreds_of_losses_are_counted_and_the_first_are_named() -> None:
    text = render([preview("dev", *(step("delete", f"queue-{index}") for index in range(200)))])
    assert "200 deleted" in text
    assert "and 140 more" in text


def test_the_command_writes_the_comment(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from cli.app import run

    (tmp_path / "dev.json").write_text(json.dumps({"steps": []}))
    (tmp_path / "prod.json").write_text(json.dumps({"steps": []}))
    offline = ["--offline", f"prod={tmp_path}/prod.json", "--offline", f"dev={tmp_path}/dev.json"]
    assert run(["ci", "comment", f"dev={tmp_path}/dev.json", *offline]) == 0
    text = capsys.readouterr().out
    assert text.startswith(MARKER)
    assert "| dev |" in text
    assert "| prod (as if new) |" in text
    assert run(["ci", "comment", "dev"]) == 2
