"""JSON documents (policies, redrive settings, dashboards) whose text AWS compares as text: keys sorted, no spaces."""

from typing import Any, Final

import pulumi

POLICY_VERSION: Final = "2012-10-17"


class JsonDocument(pulumi.Output[str]):
    """The JSON text of `source`, which may hold Outputs. `source` stays readable while they are unknown, at preview."""

    def __init__(self, source: Any) -> None:
        text = pulumi.Output.json_dumps(source, sort_keys=True, separators=(",", ":"))
        super().__init__(text.resources(), _value(text), text.is_known(), text.is_secret())
        self.source = source


async def _value(text: pulumi.Output[str]) -> str:
    # Typed Optional for callers that hide unknowns; with_unknowns keeps them as what they are.
    return await text.future(with_unknowns=True)  # pyright: ignore[reportReturnType]


def policy_document(statements: list[dict[str, Any]]) -> JsonDocument:
    """An IAM policy document of these statements."""
    return JsonDocument({"Version": POLICY_VERSION, "Statement": statements})


def trust_policy(service: str) -> JsonDocument:
    """Lets one AWS service assume the role."""
    statement = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": service}}
    return policy_document([statement])
