"""Bearer keys. Only their SHA-256 digests are configured; keys are random, so a plain hash is as good as a slow one."""

import hashlib
import hmac
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from fastapi import Request, Response, Security
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer
from pydantic import TypeAdapter, ValidationError

from api_services.errors import ConfigurationError
from api_services.http.problems import HttpError


class Role(StrEnum):
    BOT = "bot"
    PORTAL = "portal"
    ADMIN = "admin"


_DIGEST_CHARS: Final = 64
_CONFIGURED: TypeAdapter[dict[Role, list[str]]] = TypeAdapter(dict[Role, list[str]])

BEARER: Final = Security(HTTPBearer(auto_error=False, description="A key of one role: bot, portal or admin"))
"""Declares the scheme in the OpenAPI document; `guarded` does the checking, before the body is read."""


@dataclass(frozen=True, slots=True)
class ApiKeys:
    """Digests of the keys of each role; several a role, so that a key can be replaced without a gap."""

    digests: Mapping[Role, tuple[bytes, ...]]

    @classmethod
    def parse(cls, secret: str) -> "ApiKeys":
        """From the secret's JSON: role to a list of SHA-256 hex digests. Raises `ConfigurationError`."""
        try:
            configured = _CONFIGURED.validate_python(json.loads(secret))
            digests = {role: tuple(bytes.fromhex(one) for one in values) for role, values in configured.items()}
        except (ValueError, ValidationError):
            raise ConfigurationError(_SHAPE, code="api_keys") from None
        if any(len(digest) * 2 != _DIGEST_CHARS for values in digests.values() for digest in values):
            raise ConfigurationError(_SHAPE, code="api_keys")
        if not any(digests.values()):
            raise ConfigurationError(f"API_KEYS holds no key at all. {_SHAPE}", code="api_keys")
        return cls(digests)

    def role_of(self, key: str) -> Role | None:
        """The role the key opens, or None. Every digest is compared, each in constant time."""
        given = hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
        found: Role | None = None
        for role, digests in self.digests.items():
            for digest in digests:
                if hmac.compare_digest(given, digest):
                    found = role
        return found

    def derived_key(self, purpose: str) -> bytes:
        """A key for signing that all processes with these keys share, and that changes when any key does."""
        everything = b"".join(
            role.encode() + b":" + digest for role in sorted(self.digests) for digest in sorted(self.digests[role])
        )
        return hmac.digest(everything, purpose.encode(), "sha256")


_SHAPE: Final = (
    'The secret api-keys is JSON like {"bot": ["<sha256 hex>"], "portal": [...], "admin": [...]}; '
    "set it with `./sophia secrets set api-keys`."
)


def bearer_key(request: Request) -> str | None:
    """The key of the Authorization header, if there is one."""
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    return key.strip() if scheme.lower() == "bearer" and key.strip() else None


def guarded(*roles: Role) -> type[APIRoute]:
    """A route class that lets only these roles in, before anything of the request's body is read."""
    allowed = frozenset(roles)

    class GuardedRoute(APIRoute):
        allowed_roles = allowed

        def get_route_handler(self) -> Callable[[Request], Awaitable[Response]]:  # pyright: ignore[reportIncompatibleMethodOverride]
            handle: Any = super().get_route_handler()

            async def check_then_handle(request: Request) -> Response:
                keys: ApiKeys = request.app.state.dependencies.keys
                key = bearer_key(request)
                role = keys.role_of(key) if key is not None else None
                if role is None:
                    raise HttpError(
                        401,
                        "unauthenticated",
                        "Send a key of yours as 'Authorization: Bearer <key>'.",
                        headers={"WWW-Authenticate": 'Bearer realm="sophia"'},
                    )
                request.scope["role"] = role.value
                if role not in allowed:
                    wanted = " or ".join(sorted(allowed))
                    raise HttpError(403, "forbidden", f"This needs a key of the role {wanted}, yours is {role}.")
                return await handle(request)

            return check_then_handle

    return GuardedRoute
