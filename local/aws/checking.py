"""Check: names the inputs the local stage would not act on, and gives unnamed resources their physical name."""

import hashlib
from dataclasses import dataclass, field

from local.aws.table import Naming, Row
from local.aws.values import UNKNOWN, Props, canonical_json, is_empty

_RANDOM_DIGITS = 7
_ENGINE_KEYS = frozenset({"__defaults", "__meta"})
"""Left in the inputs of a stack that the real provider once deployed."""


@dataclass(slots=True)
class Checked:
    """Inputs to be stored, and per refused input a sentence."""

    inputs: Props
    failures: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])


def check(row: Row, name: str, news: Props, olds: Props, random_seed: bytes, *, region: str, offline: bool) -> Checked:
    """Inputs with JSON documents canonical and the physical name filled in; failures for what has no meaning here."""
    inputs = {key: value for key, value in news.items() if key not in _ENGINE_KEYS and value is not None}
    result = Checked(inputs)
    if not offline:
        _refuse_foreign(row, name, inputs, region, result)
    for key, value in inputs.items():
        if row.property(key).document and isinstance(value, str):
            inputs[key] = canonical_json(value)
    if row.naming is not None:
        _fill_name(row.naming, name, inputs, olds, random_seed, result)
    return result


def _refuse_foreign(row: Row, name: str, inputs: Props, region: str, result: Checked) -> None:
    if row.refusal:
        result.failures.append(("", row.refusal))
        return
    result.failures.extend(
        (
            key,
            f"the local stage does not act on the input '{key}' of {row.resource_type} '{name}'; "
            f"add it to the type's row in local/aws/rows, or leave it out on this stage",
        )
        for key in sorted(inputs.keys() - row.accepted)
    )
    stated = inputs.get("region")
    if stated not in (None, UNKNOWN, region):
        sentence = f"the local stage has one region, {region}, and '{name}' states '{stated}'"
        result.failures.append(("region", sentence))


def _fill_name(naming: Naming, name: str, inputs: Props, olds: Props, random_seed: bytes, result: Checked) -> None:
    if not is_empty(inputs.get(naming.property)):
        return
    kept = olds.get(naming.property)
    if isinstance(kept, str) and kept:
        inputs[naming.property] = kept
        return
    suffix = naming.suffix(inputs)
    chosen = f"{naming.prefix}{name}-{random_digits(random_seed, name)}{suffix}"
    if len(chosen) > naming.max_length:
        sentence = (
            f"'{name}': the name it would be given, {chosen}, has {len(chosen)} characters and AWS allows "
            f"{naming.max_length}; state '{naming.property}' or shorten the resource's name"
        )
        result.failures.append((naming.property, sentence))
        return
    inputs[naming.property] = chosen


def random_digits(random_seed: bytes, name: str) -> str:
    """Hex digits that the engine's seed decides: the preview and the `up` after it agree, a replacement differs."""
    return hashlib.sha256(random_seed + name.encode()).hexdigest()[:_RANDOM_DIGITS]
