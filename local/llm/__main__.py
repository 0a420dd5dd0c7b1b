"""`python -m local.llm --port N`: serve until interrupted; prints the port in use as its only line."""

import argparse
import signal
import sys
from typing import Any

from local.llm.server import LlmServer


def main() -> int:
    """Run the server in the foreground; SIGTERM and SIGINT end it quietly."""
    parser = argparse.ArgumentParser(prog="python -m local.llm", description=main.__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 picks a free one")
    parser.add_argument("--latency-ms", type=float, default=0.0, help="how long each answer takes at least")
    options = parser.parse_args()
    try:
        server = LlmServer(options.port, latency_seconds=options.latency_ms / 1000)
    except OSError as exc:
        sys.stderr.write(f"Port {options.port} cannot be used ({exc.strerror}); choose another, or 0 for a free one.\n")
        return 2

    def interrupt(_signal: int, _frame: Any) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)
    sys.stdout.write(f"{server.server_address[1]}\n")
    sys.stdout.flush()
    try:
        server.serve_forever(poll_interval=0.1)
    except KeyboardInterrupt:
        server.faults.clear()
    finally:
        server.server_close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
