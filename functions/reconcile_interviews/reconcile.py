"""From the schedule to the reconciler."""

from collections.abc import Callable

from api_services.clock import utc_now
from api_services.interviews.reconcile import ReconcileCollaborators, reconcile_interviews
from functions.platform import clients


def connect() -> ReconcileCollaborators:
    """What the reconciler reads and where it sends."""
    return ReconcileCollaborators.of(clients.mongo_database(), clients.queue_sender())


def reconcile(collaborators: ReconcileCollaborators, remaining_seconds: Callable[[], float]) -> None:
    """Close the gaps that are old enough."""
    reconcile_interviews(collaborators, now=utc_now(), remaining_seconds=remaining_seconds)
