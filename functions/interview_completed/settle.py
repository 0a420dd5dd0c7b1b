"""From records to settlement; shared with the stand-alone consumer of failed interviews."""

from collections.abc import Sequence

from api_services.clock import utc_now
from api_services.credits.settlement import SettlementCollaborators, SettlementMessage, settle_many
from functions.platform import clients
from functions.platform.records import RecordContext


def connect() -> SettlementCollaborators:
    """Collaborators of settlement."""
    return SettlementCollaborators.of(clients.mongo_database(), clients.queue_sender())


def settle(collaborators: SettlementCollaborators, message: SettlementMessage, context: RecordContext) -> None:
    """Settle one interview."""
    settle_group(collaborators, (message,), (context,))


def settle_group(
    collaborators: SettlementCollaborators, messages: Sequence[SettlementMessage], contexts: Sequence[RecordContext]
) -> None:
    """Settle interviews of one organization in one transaction."""
    settle_many(
        collaborators,
        messages,
        now=utc_now(),
        timeout_seconds=contexts[0].remaining_seconds(),
        request_ids=[context.request_id for context in contexts],
    )
