"""`python -m benchmarks.torture.consumer QUEUE`: the poller of a queue with a shorter function timeout, so that leases
of what was killed end within the run."""

import dataclasses
import sys

from benchmarks.torture.process import handler_of, options_of, poll_until_told


def main() -> int:
    """Poll until SIGTERM, or until the parent is gone."""
    options = options_of(__doc__)
    spec, handler = handler_of(options.queue)
    shorter = dataclasses.replace(spec, function_timeout_seconds=options.function_timeout_seconds)
    handler.setup = dataclasses.replace(handler.setup, spec=shorter)
    poll_until_told(handler.spec, options.lease_seconds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
