"""`python -m benchmarks.torture.documents_consumer ingest`: the ingest consumer with a document lease of seconds, so
that what was killed is taken up within the run."""

import dataclasses
import sys
from typing import Any, Final

from benchmarks.torture.process import handler_of, options_of, poll_until_told

DOCUMENT_LEASE_SECONDS: Final = 4.0


def main() -> int:
    """Poll until SIGTERM, or until the parent is gone."""
    options = options_of(__doc__)
    spec, handler = handler_of(options.queue)
    connect = handler.connect

    def connect_with_short_lease() -> Any:
        collaborators = connect()
        tools = dataclasses.replace(collaborators.tools, lease_seconds=DOCUMENT_LEASE_SECONDS)
        return dataclasses.replace(collaborators, tools=tools)

    handler.connect = connect_with_short_lease
    poll_until_told(spec, options.lease_seconds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
