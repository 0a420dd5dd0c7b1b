"""The portal's session: a signed cookie, and a token in each form that belongs to that cookie."""

import base64
import binascii
import hmac
import json
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from api_services.http.auth import ApiKeys, Role

COOKIE: Final = "sophia_portal"
COOKIE_PATH: Final = "/portal"
LIFETIME: Final = timedelta(hours=8)
_MAX_COOKIE_CHARS: Final = 1024


@dataclass(frozen=True, slots=True)
class Session:
    """Who is signed in, until when; `identifier` ties form tokens to it."""

    identifier: str
    role: Role
    expires_at: int


class Sessions:
    """Makes and reads cookies. Keys derive from the API keys: replacing one signs everybody out."""

    def __init__(self, keys: ApiKeys) -> None:
        self._cookie_key = keys.derived_key("portal-cookie")
        self._form_key = keys.derived_key("portal-form")

    def start(self, role: Role, now: datetime) -> tuple[Session, str]:
        """A new session and its cookie's value."""
        session = Session(secrets.token_urlsafe(16), role, int((now + LIFETIME).timestamp()))
        payload = _encode(json.dumps([session.identifier, session.role, session.expires_at]).encode())
        return session, f"{payload}.{_encode(self._signature(payload))}"

    def read(self, cookie: str | None, now: datetime) -> Session | None:
        """The session of a cookie that we signed and that has not expired."""
        if not cookie or len(cookie) > _MAX_COOKIE_CHARS:
            return None
        payload, _, signature = cookie.partition(".")
        try:
            if not hmac.compare_digest(_decode(signature), self._signature(payload)):
                return None
            fields: Any = json.loads(_decode(payload))
            session = Session(str(fields[0]), Role(fields[1]), int(fields[2]))
        except (ValueError, binascii.Error, LookupError, TypeError):
            return None
        return session if session.expires_at > now.timestamp() else None

    def form_token(self, session: Session) -> str:
        """What every form of this session carries."""
        return _encode(hmac.digest(self._form_key, session.identifier.encode(), "sha256"))

    def is_form_token(self, session: Session, token: str) -> bool:
        """Whether a submitted form came from a page of this session."""
        return hmac.compare_digest(self.form_token(session).encode(), token.encode("utf-8", "surrogatepass"))

    def _signature(self, payload: str) -> bytes:
        return hmac.digest(self._cookie_key, payload.encode("utf-8", "surrogatepass"), "sha256")


def _encode(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    return base64.b64decode(text.encode("ascii") + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
