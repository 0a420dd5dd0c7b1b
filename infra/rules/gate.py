"""Holds the program against the rules, at every preview, before it says that all is well."""

from collections.abc import Mapping
from typing import Final

import pulumi

from infra import rules
from infra.config import StageConfig
from infra.rules.graph import Recorder

RENAMED: Final[Mapping[str, tuple[str, ...]]] = {}
"""Former logical names by today's, so that a rename in the program keeps the resource: `{"new": ("old",)}`."""


def record_resources() -> Recorder:
    """Remember every resource that the program declares from here on, and give renamed ones their former names."""
    recorder = Recorder()
    pulumi.runtime.register_stack_transformation(keep_renamed(RENAMED))
    pulumi.runtime.register_stack_transformation(recorder.record)
    return recorder


def keep_renamed(renamed: Mapping[str, tuple[str, ...]]) -> pulumi.ResourceTransformation:
    """A transformation that gives each renamed resource an alias per former name."""

    def transform(args: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult | None:
        former = renamed.get(args.name)
        if former is None:
            return None
        aliases: list[str | pulumi.Alias] = [pulumi.Alias(name=name) for name in former]
        opts = pulumi.ResourceOptions.merge(args.opts, pulumi.ResourceOptions(aliases=aliases))
        return pulumi.ResourceTransformationResult(args.props, opts)

    return transform


def refuse_violations(declared: Recorder, config: StageConfig) -> None:
    """End the program with one line per fault. Raises `pulumi.RunError`, which prints without traceback."""
    violations = rules.check(declared.graph(config.stage))
    if violations:
        lines = "\n".join(f"  {violation.sentence}" for violation in violations)
        count = f"{len(violations)} rule{'s' if len(violations) > 1 else ''}"
        raise pulumi.RunError(f"stage {config.stage} breaks {count}:\n{lines}")
