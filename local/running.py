"""A local stage that runs: where its parts are and how to speak with them."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from local.emulator import client_environ
from local.mongod import mongod_uri
from local.services import API, EMULATOR, LLM, MONGOD
from toolchain.processes import LOOPBACK


@dataclass(frozen=True, slots=True)
class RunningStage:
    """Ports, stack outputs and bearer keys (role to key) of the stage."""

    ports: Mapping[str, int]
    outputs: Mapping[str, str]
    keys: Mapping[str, str]
    log_dir: Path
    index_dir: Path
    uses_real_openai: bool

    @property
    def api_url(self) -> str:
        return self._url(API)

    @property
    def llm_url(self) -> str:
        """Base of the LLM server; the OpenAI API is below `/v1`, its controls below `/_control`."""
        return self._url(LLM)

    @property
    def endpoint_url(self) -> str:
        """Where the AWS emulator listens."""
        return self._url(EMULATOR)

    @property
    def mongo_uri(self) -> str:
        return mongod_uri(self.ports[MONGOD])

    @property
    def aws_environ(self) -> dict[str, str]:
        """Environment of an AWS client of the stage."""
        return client_environ(self.endpoint_url)

    def _url(self, name: str) -> str:
        return f"http://{LOOPBACK}:{self.ports[name]}"
