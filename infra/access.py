"""What one principal may do and the environment it does it with, collected together so that they cannot disagree."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pulumi


@dataclass
class Access:
    """Statements and environment of one role; components add to it through their `grant_*` methods."""

    statements: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    environment: dict[str, pulumi.Input[str]] = field(default_factory=dict[str, pulumi.Input[str]])

    def allow(
        self,
        sid: str,
        actions: Sequence[str],
        *resources: pulumi.Input[str],
        condition: dict[str, Any] | None = None,
    ) -> None:
        """Allow `actions` on exactly `resources`; a second grant of one sid widens the first."""
        for statement in self.statements:
            if statement["Sid"] == sid:
                statement["Resource"].extend(resources)
                return
        statement: dict[str, Any] = {
            "Sid": sid,
            "Effect": "Allow",
            "Action": sorted(actions),
            "Resource": list(resources),
        }
        if condition is not None:
            statement["Condition"] = condition
        self.statements.append(statement)

    def set(self, key: str, value: pulumi.Input[str]) -> None:
        """Set an environment variable; setting one twice is a mistake in the program."""
        if key in self.environment:
            raise ValueError(f"environment variable {key} is set twice")
        self.environment[key] = value

    def allow_once(
        self, sid: str, actions: Sequence[str], resource: pulumi.Input[str], *, condition: dict[str, Any]
    ) -> None:
        """As `allow`, for a resource that several grants share, such as a key."""
        if all(statement["Sid"] != sid for statement in self.statements):
            self.allow(sid, actions, resource, condition=condition)
