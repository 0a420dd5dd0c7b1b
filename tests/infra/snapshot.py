"""The complete declared resources of a stage as readable text, and the comparison with the text that is kept."""

import json
import os
from pathlib import Path
from typing import Any, cast

import pulumi
import yaml

from api_services.queues import QUEUES
from api_services.schedules import SCHEDULES
from cli.test.lib import UPDATE_SNAPSHOTS
from tests.infra.engine import ROOT, Engine, Recorded

FOLDER = Path(__file__).parent / "snapshots"
HINT = "If this is meant, run: ./sophia test infra --update"
STAGE_PART = "stage"
PARTS = (*(spec.name for spec in (*QUEUES, *SCHEDULES)), STAGE_PART)
"""A snapshot is one file a queue or job, and one for what they share."""

Snapshot = dict[str, dict[str, Any]]


def snapshot_of(resources: list[Recorded]) -> Snapshot:
    """Every resource by `type name`, under its parent's name where it has one, with all inputs."""
    found: Snapshot = {}
    for resource in resources:
        key = f"{resource.type} {resource.name}"
        assert key not in found, f"{key} is declared twice"
        entry: dict[str, Any] = {"in": resource.parent.split("::")[-1]} if resource.parent else {}
        if resource.protect:
            entry["protect"] = True
        found[key] = entry | {name: _readable(value) for name, value in resource.inputs.items()}
    return dict(sorted(found.items()))


def as_text(engine: Engine) -> str:
    """All resources of a stage, in full."""
    return yaml.safe_dump(snapshot_of(engine.resources), width=118, sort_keys=True)


def part_of(key: str) -> str:
    """The queue or job whose name a resource's name begins with, else the stage's own part."""
    name = key.split(" ", 1)[1].split(": ", 1)[0]
    owners = [part for part in PARTS if name == part or name.startswith(f"{part}-")]
    return max(owners, key=len, default=STAGE_PART)


def part_as_text(engine: Engine, part: str) -> str:
    """The resources of one part of a stage, in full."""
    own = {key: inputs for key, inputs in snapshot_of(engine.resources).items() if part_of(key) == part}
    return yaml.safe_dump(own, width=118, sort_keys=True)


def against(other: Engine, engine: Engine, part: str) -> str:
    """In what one part of a stage differs from another stage's, names apart, one line per resource or input."""
    texts = [
        text.replace(f"sophia-{stage}", "sophia-STAGE").replace(f"/{stage}", "/STAGE").replace(f": {stage}", ": STAGE")
        for stage, text in ((item.graph.stage, part_as_text(item, part)) for item in (other, engine))
    ]
    return "".join(f"{line}\n" for line in differences(*(yaml.safe_load(text) for text in texts)))


def kept(name: str, found: str) -> str:
    """The text of that name in the repository; `found` is written there first if asked to."""
    path = FOLDER / name
    if os.environ.get(UPDATE_SNAPSHOTS) == "1":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(found)
    assert path.is_file(), f"{name} is missing. {HINT}"
    return path.read_text()


def unexpected(expected: set[str]) -> list[str]:
    """Snapshot files that belong to no part of any stage; they are removed first if asked to."""
    found = {path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*") if path.is_file()}
    if os.environ.get(UPDATE_SNAPSHOTS) == "1":
        for name in found - expected:
            (FOLDER / name).unlink()
        return []
    return sorted(found - expected)


def differences(expected: Snapshot, found: Snapshot) -> list[str]:
    """One line per resource or input that is missing, added or other than expected."""
    lines = [f"missing: {key}" for key in expected.keys() - found.keys()]
    lines += [f"not expected: {key}" for key in found.keys() - expected.keys()]
    for key in expected.keys() & found.keys():
        for name in sorted(expected[key].keys() | found[key].keys()):
            was, now = expected[key].get(name), found[key].get(name)
            if was != now:
                lines.append(f"{key}: {name} was {was!r}, is {now!r}")
    return sorted(lines)


def _readable(value: Any) -> Any:
    if isinstance(value, str):
        if value[:1] in ("{", "["):
            return {"json": json.loads(value)}
        return value.replace(str(ROOT), "<repository>")
    if isinstance(value, dict):
        return {key: _readable(item) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_readable(item) for item in cast("list[Any]", value)]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, pulumi.FileArchive):
        return value.path.replace(str(ROOT), "<repository>")
    return value
