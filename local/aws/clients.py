"""Clients of the emulator, made when a row first needs one."""

import threading
from functools import cached_property
from typing import Any, Final

from local.aws.configuration import Configuration

POOL_SIZE: Final = 32
"""Connections per client: as many as calls the engine makes at once."""

_CONNECT_TIMEOUT_SECONDS = 120
"""Also the longest wait of a send: function packages of tens of megabytes go to one busy emulator process."""

_READ_TIMEOUT_SECONDS = 120


class EmulatorCall:
    """What a row may use; safe for concurrent use."""

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration
        self._clients: dict[str, Any] = {}
        self._lock = threading.Lock()

    @property
    def region(self) -> str:
        """The region of every client."""
        return self._configuration.region

    @property
    def account_id(self) -> str:
        """The emulator's account."""
        return self._account_id

    @cached_property
    def _account_id(self) -> str:
        return str(self.client("sts").get_caller_identity()["Account"])

    def client(self, service: str) -> Any:
        """The client of one AWS service, with dummy keys and no proxy."""
        with self._lock:
            if service not in self._clients:
                self._clients[service] = self._make(service)
            return self._clients[service]

    @cached_property
    def _session(self) -> Any:
        import botocore.session  # half a second that offline previews do not pay

        return botocore.session.Session()

    def _make(self, service: str) -> Any:
        from botocore.config import Config

        return self._session.create_client(
            service,
            region_name=self.region,
            endpoint_url=self._configuration.endpoint_of(service),
            aws_access_key_id="test",
            aws_secret_access_key="test",  # noqa: S106  (the emulator takes any)
            config=Config(
                connect_timeout=_CONNECT_TIMEOUT_SECONDS,
                read_timeout=_READ_TIMEOUT_SECONDS,
                max_pool_connections=POOL_SIZE,
                retries={"mode": "standard", "total_max_attempts": 2},
                s3={"addressing_style": "path"},
                request_checksum_calculation="when_required",
                proxies={},  # a proxy of the user's would take the calls off this machine
                parameter_validation=True,
            ),
        )
