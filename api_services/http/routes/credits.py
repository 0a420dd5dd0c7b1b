"""Credits of organizations: grants, what is left, and the ledger behind it."""

from typing import Annotated

from fastapi import APIRouter, Header, Path, Query, Response
from pydantic import AwareDatetime

from api_services.credits import service
from api_services.credits.models import Balance, CreditLot, LedgerEntry
from api_services.credits.service import IdempotencyKey
from api_services.entities import Page, PositiveCredits
from api_services.http.auth import BEARER, Role, guarded
from api_services.http.dependencies import Deps
from api_services.http.problems import responses
from api_services.http.schemas import Input
from api_services.messages import Identifier
from api_services.paging import MAX_PAGE_SIZE

OrganizationId = Annotated[Identifier, Path(alias="organizationId")]
Limit = Annotated[int, Query(ge=1, le=MAX_PAGE_SIZE)]
Cursor = Annotated[str | None, Query(max_length=512)]

router = APIRouter(
    prefix="/organizations/{organizationId}/credits",
    tags=["credits"],
    route_class=guarded(Role.ADMIN),
    dependencies=[BEARER],
)


class NewLot(Input):
    """Whole credits, granted together; without `expiresAt` they never lapse."""

    amount: PositiveCredits
    expires_at: AwareDatetime | None = None


@router.post("/lots", status_code=201, responses={200: {"model": CreditLot}, **responses(409, 413)})
def grant_credits(
    organization_id: OrganizationId,
    new: NewLot,
    idempotency_key: Annotated[IdempotencyKey, Header()],
    response: Response,
    deps: Deps,
) -> CreditLot:
    """Grant credits; what the organization owes is repaid first.

    The same `Idempotency-Key` again answers 200 with the same lot.
    """
    grant = service.grant_credits(
        deps.credits,
        organization_id=organization_id,
        amount=new.amount,
        expires_at=new.expires_at,
        idempotency_key=idempotency_key,
        now=deps.clock(),
    )
    if not grant.created:
        response.status_code = 200
    return grant.lot


@router.get("", responses=responses())
def get_balance(organization_id: OrganizationId, deps: Deps) -> Balance:
    """What may be spent now, what lapsed unspent, and what is owed; zeros where nothing was ever granted."""
    return service.balance(deps.credits, organization_id, now=deps.clock())


@router.get("/lots", responses=responses())
def list_lots(organization_id: OrganizationId, deps: Deps, limit: Limit = 50, cursor: Cursor = None) -> Page[CreditLot]:
    """Lots, newest first."""
    return service.lots(deps.credits, organization_id, limit=limit, cursor=cursor)


@router.get("/ledger", responses=responses())
def list_ledger(
    organization_id: OrganizationId, deps: Deps, limit: Limit = 50, cursor: Cursor = None
) -> Page[LedgerEntry]:
    """Ledger entries, newest first. The ledger is append-only."""
    return service.ledger(deps.credits, organization_id, limit=limit, cursor=cursor)
