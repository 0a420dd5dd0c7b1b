"""The complete resources of the stage dev, with every input, and in what the other stages differ from it."""

import pytest
import yaml

from tests.infra.engine import ROOT, Engine
from tests.infra.snapshot import HINT, PARTS, against, as_text, differences, kept, part_as_text, snapshot_of, unexpected

OTHER_STAGES = ("local", "prod")


@pytest.mark.parametrize("part", PARTS)
def test_the_stage_dev_declares_exactly_the_resources_and_inputs_of_its_snapshot(part: str, dev: Engine) -> None:
    found = part_as_text(dev, part)
    lines = differences(yaml.safe_load(kept(f"dev/{part}.yaml", found)), yaml.safe_load(found))
    assert not lines, "\n".join([*lines, HINT])


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("stage", OTHER_STAGES)
def test_another_stage_differs_from_dev_in_exactly_this(
    stage: str, part: str, dev: Engine, stages: dict[str, Engine]
) -> None:
    found = against(dev, stages[stage], part)
    assert kept(f"{stage}-against-dev/{part}.txt", found) == found, HINT


def test_every_snapshot_belongs_to_a_part_of_a_stage() -> None:
    expected = {f"dev/{part}.yaml" for part in PARTS}
    expected |= {f"{stage}-against-dev/{part}.txt" for stage in OTHER_STAGES for part in PARTS}
    assert unexpected(expected) == [], HINT


def test_a_resource_that_is_removed_or_added_is_named(dev: Engine) -> None:
    full = snapshot_of(dev.resources)
    for key in full:
        without = {name: inputs for name, inputs in full.items() if name != key}
        assert differences(full, without) == [f"missing: {key}"]
        assert differences(without, full) == [f"not expected: {key}"]


def test_every_input_that_changes_is_named(dev: Engine) -> None:
    full = snapshot_of(dev.resources)
    for key, inputs in full.items():
        for name in inputs:
            mutated = {**full, key: {**inputs, name: "changed"}}
            (line,) = differences(full, mutated)
            assert line.startswith(f"{key}: {name} was ")


def test_a_snapshot_is_the_same_wherever_the_checkout_lies(engine: Engine) -> None:
    assert str(ROOT) not in as_text(engine)
