"""Health says that the process answers; readiness that it can do its work. Neither needs a key."""

import logging
from typing import Literal

from fastapi import APIRouter, Response
from pydantic import BaseModel

from api_services.errors import AppError
from api_services.http.dependencies import Deps

logger = logging.getLogger(__name__)

router = APIRouter(tags=["health"])


class Health(BaseModel):
    """The process answers."""

    status: Literal["ok"] = "ok"


class Readiness(BaseModel):
    """Each dependency: `ok`, or the code of what is wrong with it."""

    status: Literal["ok", "unavailable"]
    checks: dict[str, str]


@router.get("/healthz")
async def healthz() -> Health:
    """Never touches a dependency: a database that is down is no reason to restart this process."""
    return Health()


@router.get("/readyz", responses={503: {"model": Readiness}})
def readyz(response: Response, deps: Deps) -> Readiness:
    """Ask MongoDB and the queues."""
    found: dict[str, str] = {}
    for name, check in deps.checks.items():
        try:
            check()
            found[name] = "ok"
        except AppError as exc:
            logger.warning("readiness.check_failed", exc_info=True, extra={"check": name, "code": exc.code})
            found[name] = exc.code
    ready = all(outcome == "ok" for outcome in found.values())
    if not ready:
        response.status_code = 503
    return Readiness(status="ok" if ready else "unavailable", checks=found)
