from collections.abc import Callable

import pytest

from api_services.errors import DependencyError
from api_services.request_context import current_request_id
from api_services.schedules import RECONCILE_INTERVIEWS
from functions.platform.scheduled import scheduled
from tests.support.fakes import FakeLambdaContext


class Job:
    """Counts what happens."""

    def __init__(self) -> None:
        self.connects = 0
        self.request_ids: list[str | None] = []
        self.remaining: list[float] = []
        self.error: Exception | None = None

    def connect(self) -> str:
        self.connects += 1
        if self.error is not None:
            raise self.error
        return "collaborators"

    def run(self, collaborators: str, remaining_seconds: Callable[[], float]) -> None:
        assert collaborators == "collaborators"
        self.request_ids.append(current_request_id())
        self.remaining.append(remaining_seconds())
        if self.error is not None:
            raise self.error


def test_a_job_runs_under_a_request_id_of_its_own_with_shared_collaborators() -> None:
    job = Job()
    handler = scheduled(RECONCILE_INTERVIEWS, job.run, connect=job.connect)
    handler({"any": "event"}, FakeLambdaContext(30_000))
    handler(None, FakeLambdaContext(20_000))
    assert job.connects == 1
    assert job.remaining == [30.0, 20.0]
    assert len(set(job.request_ids)) == 2
    assert None not in job.request_ids
    assert current_request_id() is None


def test_outside_lambda_a_job_has_its_functions_timeout() -> None:
    job = Job()
    scheduled(RECONCILE_INTERVIEWS, job.run, connect=job.connect)()
    assert 119 < job.remaining[0] <= 120


def test_a_job_that_raises_fails_the_invocation_so_that_the_scheduler_tries_again() -> None:
    job = Job()
    handler = scheduled(RECONCILE_INTERVIEWS, job.run, connect=job.connect)
    handler()
    job.error = DependencyError("MongoDB did not answer.")
    with pytest.raises(DependencyError):
        handler()


def test_a_failed_connection_is_tried_again() -> None:
    job = Job()
    job.error = DependencyError("MongoDB did not answer.")
    handler = scheduled(RECONCILE_INTERVIEWS, job.run, connect=job.connect)
    with pytest.raises(DependencyError):
        handler()
    job.error = None
    handler()
    assert job.connects == 2
    assert len(job.request_ids) == 1
