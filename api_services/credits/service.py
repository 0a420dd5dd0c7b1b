"""Granting credits, and reading what an organization has."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import AwareDatetime, StringConstraints, TypeAdapter, ValidationError

from api_services.credits.models import Balance, CreditLot, Grant, LedgerEntry
from api_services.credits.repository import CreditRepository, lot_id_for
from api_services.entities import Page, PositiveCredits
from api_services.errors import ConflictError, DependencyError, InvalidInputError
from api_services.messages import Identifier
from api_services.mongo import DUPLICATE_KEY, Session
from api_services.paging import page_size

IdempotencyKey = Annotated[str, StringConstraints(pattern=r"^[\x21-\x7e]{1,128}$")]

_IDENTIFIER: TypeAdapter[str] = TypeAdapter(Identifier)
_KEY: TypeAdapter[str] = TypeAdapter(IdempotencyKey)
_AMOUNT: TypeAdapter[int] = TypeAdapter(PositiveCredits)
_EXPIRY: TypeAdapter[datetime | None] = TypeAdapter(AwareDatetime | None)

TRANSACTION_TIMEOUT_SECONDS = 10.0


def grant_credits(
    credits: CreditRepository,
    *,
    organization_id: str,
    amount: int,
    idempotency_key: str,
    now: datetime,
    expires_at: datetime | None = None,
    timeout_seconds: float = TRANSACTION_TIMEOUT_SECONDS,
) -> Grant:
    """Give an organization a lot of `amount` whole credits; what it owes is repaid from the lot first.

    The same key with the same amount and expiry returns the stored lot. Raises `ConflictError` for the same key with
    others, `InvalidInputError` for values out of bounds and for an expiry that has passed.
    """
    _check(_IDENTIFIER, organization_id, "organizationId")
    _check(_KEY, idempotency_key, "idempotencyKey")
    _check(_AMOUNT, amount, "amount")
    expires_at = _to_milliseconds(_check(_EXPIRY, expires_at, "expiresAt"))
    lot_id = lot_id_for(organization_id, idempotency_key)

    def grant(session: Session) -> Grant:
        stored = credits.find_lot(lot_id, session)
        if stored is not None:
            if (stored.amount, stored.expires_at) != (amount, expires_at):
                raise ConflictError(
                    "This idempotency key granted other credits before; use a new key for a new grant",
                    organization_id=organization_id,
                    lot_id=lot_id,
                )
            return Grant(stored, created=False)
        if expires_at is not None and expires_at <= now:
            raise InvalidInputError("expiresAt: the lot would have expired already")
        repaid = credits.repay_overdraft(organization_id, amount, session)
        lot = CreditLot(
            lot_id=lot_id,
            organization_id=organization_id,
            amount=amount,
            remaining=amount - repaid,
            overdraft_repaid=repaid,
            granted_at=now,
            expires_at=expires_at,
        )
        credits.insert_grant(lot, session)
        return Grant(lot, created=True)

    try:
        return credits.in_transaction(grant, timeout_seconds=timeout_seconds)
    except ConflictError as exc:
        if exc.code != DUPLICATE_KEY:
            raise
        # The same grant, or the organization's first other one, was stored between our read and our write.
        raise DependencyError("Another grant was stored at the same moment; send it again", code="busy") from exc


def balance(credits: CreditRepository, organization_id: str, *, now: datetime) -> Balance:
    """What the organization may spend now, what lapsed, and what it owes; zeros where nothing was ever granted."""
    return credits.balance(_check(_IDENTIFIER, organization_id, "organizationId"), now=now)


def ledger(
    credits: CreditRepository, organization_id: str, *, limit: int = 50, cursor: str | None = None
) -> Page[LedgerEntry]:
    """The organization's ledger, newest first, at most 200 entries at once."""
    _check(_IDENTIFIER, organization_id, "organizationId")
    return credits.ledger(organization_id, limit=page_size(limit), cursor=cursor)


def lots(
    credits: CreditRepository, organization_id: str, *, limit: int = 50, cursor: str | None = None
) -> Page[CreditLot]:
    """The organization's lots, newest first, at most 200 at once."""
    _check(_IDENTIFIER, organization_id, "organizationId")
    return credits.lots(organization_id, limit=page_size(limit), cursor=cursor)


def _check(adapter: TypeAdapter[Any], value: Any, name: str) -> Any:
    try:
        return adapter.validate_python(value)
    except ValidationError as exc:
        raise InvalidInputError(f"{name}: {exc.errors(include_url=False)[0]['msg']}") from exc


def _to_milliseconds(moment: datetime | None) -> datetime | None:
    """As MongoDB will keep it, so that a repeated grant compares equal."""
    return None if moment is None else moment.replace(microsecond=moment.microsecond // 1000 * 1000)
