"""Closing the gaps of a stage's interviews from here."""

from datetime import timedelta
from typing import TYPE_CHECKING

from api_services.clock import utc_now
from api_services.credits.invariants import Violation, check_invariants
from api_services.interviews.reconcile import ReconcileCollaborators, Reconciled, find_gaps, reconcile_interviews
from api_services.mongo import connect
from api_services.queues import INTERVIEW_COMPLETED, REPORT_GENERATE
from api_services.settings import MongoSettings
from api_services.sqs import SqsQueueSender

if TYPE_CHECKING:
    from cli.stage_access import StageAccess

TIMEOUT_SECONDS = 300.0


def credit_violations(access: "StageAccess") -> list[Violation]:
    """Every broken rule of the stage's credits; reads only."""
    from cli.stage_settings import stage_settings

    database = connect(stage_settings(access, MongoSettings), app_name="sophia-cli")
    try:
        return check_invariants(database)
    finally:
        database.client.close()


def reconcile_interviews_of(access: "StageAccess", *, grace: timedelta, execute: bool) -> Reconciled:
    """What is older than `grace` and lost on the way; enqueued where `execute` says so."""
    from time import monotonic

    from cli.queue.lib import url_of
    from cli.stage_settings import stage_settings

    urls = {
        spec.url_env_key: url_of(access.outputs, spec.output, access.stage)
        for spec in (INTERVIEW_COMPLETED, REPORT_GENERATE)
    }
    database = connect(stage_settings(access, MongoSettings), app_name="sophia-cli")
    collaborators = ReconcileCollaborators.of(database, SqsQueueSender(urls, lambda: access.sqs))
    deadline = monotonic() + TIMEOUT_SECONDS
    try:
        if not execute:
            return find_gaps(collaborators, now=utc_now(), grace=grace)
        return reconcile_interviews(
            collaborators, now=utc_now(), remaining_seconds=lambda: deadline - monotonic(), grace=grace
        )
    finally:
        database.client.close()
