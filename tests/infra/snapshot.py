"""The complete declared resources of a stage as readable text, and the comparison with the text that is kept."""

import json
import os
from pathlib import Path
from typing import Any, cast

import pulumi
import yaml

from tests.infra.engine import ROOT, Engine, Recorded

FOLDER = Path(__file__).parent / "snapshots"
UPDATE = "UPDATE_SNAPSHOTS"
"""Set to 1, the snapshots are written; read the difference before committing it."""

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


def against(other: Engine, engine: Engine) -> str:
    """In what a stage differs from another, names apart, one line per resource or input."""
    texts = [
        text.replace(f"sophia-{stage}", "sophia-STAGE").replace(f"/{stage}", "/STAGE").replace(f": {stage}", ": STAGE")
        for stage, text in ((item.graph.stage, as_text(item)) for item in (other, engine))
    ]
    return "\n".join(differences(*(yaml.safe_load(text) for text in texts))) + "\n"


def kept(name: str, found: str) -> str:
    """The text of that name in the repository; `found` is written there first if asked to."""
    path = FOLDER / name
    if os.environ.get(UPDATE) == "1":
        FOLDER.mkdir(exist_ok=True)
        path.write_text(found)
    return path.read_text()


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
