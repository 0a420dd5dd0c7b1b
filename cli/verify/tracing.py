"""One trace sent to Langfuse and read back, with the settings that the deployed function has.

A wrong address or key gives no error anywhere: the SDK exports in the background, to a default region where it knows no
other. Only a trace that is found again shows that tracing works.
"""

import base64
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from pydantic import SecretStr

from api_services.llm.costs import TokenUsage
from api_services.request_context import new_request_id, request_context
from api_services.secrets import LANGFUSE_SECRET_KEY
from api_services.settings import LangfuseSettings, load
from api_services.tracing import LangfuseTracer

if TYPE_CHECKING:
    from types_boto3_secretsmanager import SecretsManagerClient

WAIT_SECONDS: Final = 60.0
"""Langfuse shows a trace some seconds after it took it."""

_POLL_SECONDS: Final = 1.0
_HTTP_TIMEOUT_SECONDS: Final = 10


def tracing_settings(environ: Mapping[str, str], secrets: "SecretsManagerClient") -> LangfuseSettings | None:
    """The settings in a function's environment; None where it does not trace.

    Raises `ConfigurationError` for keys without a base URL.
    """
    if not environ.get("LANGFUSE_PUBLIC_KEY"):
        return None

    def read_secret(arn: str) -> str:
        return secrets.get_secret_value(SecretId=arn)["SecretString"]

    return load(LangfuseSettings, environ, read_secret)


def check_trace(settings: LangfuseSettings, *, wait_seconds: float = WAIT_SECONDS) -> tuple[bool, str]:
    """Send a trace and find it again at the same address with the same keys."""
    from langfuse import Langfuse

    if settings.langfuse_secret_key is None:
        return False, f"the secret key has no value: run `./sophia secrets set {LANGFUSE_SECRET_KEY.name}`"
    request_id = f"verify-{new_request_id()}"
    tracer = LangfuseTracer(settings)
    with request_context(request_id), tracer.generation("verify", model="none", messages=[]) as trace:
        trace.answered("verified", TokenUsage(), None)
    tracer.flush(_HTTP_TIMEOUT_SECONDS)
    url = f"{(settings.base_url or '').rstrip('/')}/api/public/traces/{Langfuse.create_trace_id(seed=request_id)}"
    started = time.monotonic()
    answer = "no answer"
    while time.monotonic() - started < wait_seconds:
        status = _get(url, settings.langfuse_public_key or "", settings.langfuse_secret_key)
        if status == 200:
            return True, f"a trace was sent to {settings.base_url} and read back"
        answer = f"HTTP {status}"
        if status in (401, 403):
            return False, f"{settings.base_url} refuses the keys ({answer}): they belong to another region or project"
        time.sleep(_POLL_SECONDS)
    return False, f"the trace was not found at {settings.base_url} ({answer}): check LANGFUSE_BASE_URL and the keys"


def _get(url: str, public_key: str, secret_key: SecretStr) -> int:
    pair = base64.b64encode(f"{public_key}:{secret_key.get_secret_value()}".encode()).decode()
    request = urllib.request.Request(url, headers={"Authorization": f"Basic {pair}"})  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=_HTTP_TIMEOUT_SECONDS) as answer:  # noqa: S310
            return answer.status
    except urllib.error.HTTPError as exc:
        return exc.code
