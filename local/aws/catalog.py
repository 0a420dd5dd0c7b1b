"""The table: every resource type that the local stage acts on."""

from collections.abc import Mapping
from typing import Final

from local.aws.rows import cloudwatch, functions, iam, kms, logs, mappings, scheduler, secretsmanager, sns, sqs
from local.aws.table import Row

_MODULES = (sqs, functions, mappings, iam, logs, cloudwatch, secretsmanager, scheduler, sns, kms)

TABLE: Final[Mapping[str, Row]] = {row.resource_type: row for module in _MODULES for row in module.ROWS}
"""Rows by type token."""
