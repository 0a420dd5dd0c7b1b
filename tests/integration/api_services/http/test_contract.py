"""Inputs made from the OpenAPI document, good and bad: the answers are those it promises, and none is a 500."""

from typing import Any

import pytest
import requests
import schemathesis
from fastapi import FastAPI
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import load_all_checks
from schemathesis.generation import GenerationMode

from tests.unit.api_services.http.api import as_role

pytestmark = pytest.mark.integration

EXAMPLES = 6
TAKE_NOTHING = {"/healthz", "/readyz"}


def test_every_operation_keeps_to_the_openapi_document_under_generated_input(app: FastAPI, base_url: str) -> None:
    load_all_checks()
    schema: Any = schemathesis.openapi.from_dict(app.openapi())
    # Query parameters nobody knows are ignored, as everywhere; the key is sent by the session.
    schema.config.generation.update(allow_extra_parameters=False, with_security_parameters=False)
    operations: list[Any] = [result.ok() for result in schema.get_all_operations()]
    assert len(operations) > 15
    with requests.Session() as session:
        session.headers.update(as_role("admin"))
        for operation in operations:
            for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
                if mode is GenerationMode.NEGATIVE and operation.path in TAKE_NOTHING:
                    continue
                _try(operation.as_strategy(generation_mode=mode), base_url, session)


def _try(cases: Any, base_url: str, session: requests.Session) -> None:
    @given(case=cases)
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
    )
    def run(case: Any) -> None:
        answer = case.call(base_url=base_url, session=session, headers=as_role("admin"))
        assert answer.status_code < 500, (case.as_curl_command(), answer.text)
        assert answer.headers["x-request-id"]
        case.validate_response(answer, excluded_checks=_not_promised())

    run()


def _not_promised() -> list[Any]:
    from schemathesis.specs.openapi import checks

    # Several servers answer a wrong method or an ignored key in their own way; both have tests of their own.
    return [checks.unsupported_method, checks.ignored_auth, checks.positive_data_acceptance]
