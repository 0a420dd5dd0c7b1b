"""The API as an ASGI application."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractContextManager, asynccontextmanager
from typing import Final

from fastapi import FastAPI

from api_services.http import problems
from api_services.http.dependencies import ApiDependencies
from api_services.http.middleware import MAX_BODY_BYTES, RequestMiddleware
from api_services.http.portal import routes as portal
from api_services.http.routes import credits, documents, health, interviews, reports

_DESCRIPTION: Final = """Interviews, credits and documents.

Errors are `application/problem+json` with a stable `code` and the request id. Send `X-Request-Id` to choose that id; it
comes back and follows the work through queues, logs and traces. Lists are paged by `cursor`.
"""


def create_app(
    connect: Callable[[], AbstractContextManager[ApiDependencies]], *, max_body_bytes: int = MAX_BODY_BYTES
) -> FastAPI:
    """An application that enters `connect()` when it starts and leaves it when it stops."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        with connect() as dependencies:
            app.state.dependencies = dependencies
            yield

    app = FastAPI(
        title="Sophia",
        version="1",
        description=_DESCRIPTION,
        lifespan=lifespan,
        # Both pages load scripts from elsewhere.
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    problems.register(app)
    for module in (health, interviews, reports, credits, documents, portal):
        app.include_router(module.router)
    portal.mount_static(app)
    _describe_problems(app)
    app.add_middleware(RequestMiddleware, max_body_bytes=max_body_bytes)
    return app


def _describe_problems(app: FastAPI) -> None:
    """Put the Problem schema into the OpenAPI document, where the routes' error responses point to it."""
    generate = app.openapi

    def openapi() -> dict[str, object]:
        document = generate()
        schemas = document.setdefault("components", {}).setdefault("schemas", {})
        if "Problem" not in schemas:
            schema = problems.Problem.model_json_schema(ref_template="#/components/schemas/{model}")
            schemas.update(schema.pop("$defs", {}))
            schemas["Problem"] = schema
        return document

    app.openapi = openapi
