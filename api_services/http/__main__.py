"""`python -m api_services.http --port N`: the API process. Settings come from the environment."""

import argparse
import os
import sys
from contextlib import nullcontext

import uvicorn

from api_services.errors import AppError, ConfigurationError
from api_services.http.app import create_app
from api_services.http.connect import connected
from api_services.http.settings import ApiSettings
from api_services.logs import configure_logging
from api_services.secret_values import read_secret
from api_services.settings import load

USER_ERROR = 2
GRACE_SECONDS = 20
"""For requests in flight at SIGTERM; below the 30 s after which ECS kills the task (task definition, stopTimeout)."""


def main() -> int:
    """Serve until SIGTERM or SIGINT. A process that cannot start says why in one sentence."""
    parser = argparse.ArgumentParser(prog="python -m api_services.http", description=main.__doc__)
    parser.add_argument("--host", default="127.0.0.1", help="0.0.0.0 in a container")
    parser.add_argument("--port", type=int, default=8000)
    options = parser.parse_args()
    configure_logging(os.environ.get("LOG_LEVEL") or "INFO")
    try:
        settings = load(ApiSettings, os.environ, read_secret)
        with connected(settings, os.environ) as dependencies:
            server = uvicorn.Server(
                uvicorn.Config(
                    create_app(lambda: nullcontext(dependencies)),
                    host=options.host,
                    port=options.port,
                    access_log=False,
                    log_config=None,
                    server_header=False,
                    proxy_headers=False,
                    timeout_graceful_shutdown=GRACE_SECONDS,
                )
            )
            server.run()
            return 0 if server.started else 1
    except AppError as exc:
        sys.stderr.write(f"{exc.message}\n")
        return USER_ERROR if isinstance(exc, ConfigurationError) else 1


if __name__ == "__main__":
    sys.exit(main())
