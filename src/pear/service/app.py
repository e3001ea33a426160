"""How do the parts become one web application?"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from importlib import resources
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.staticfiles import StaticFiles

import pear
from pear.errors import PearError, WorkerFailed
from pear.service import api, api_lender, logs, pages, pages_actions, pages_errors, pages_lender
from pear.service.errors import MEDIA_TYPE, ProblemDetails, ServiceError, from_pear_error
from pear.service.middleware import Around
from pear.service.searchers import Busy
from pear.service.service import Service, make_service
from pear.service.settings import Settings
from pear.service.upkeep import keep_up

DESCRIPTION = """
A person refused by a classifier answers a few questions and receives the plan that is
easiest *for them*: by what they told us, among the steps considered, for this version of
the model. Every error has the shape `ProblemDetails` and the type `application/problem+json`.
"""


def create_app(settings: Settings, service: Service | None = None) -> FastAPI:
    """The application of one service."""
    logs.set_up(settings.log_level)
    service = service or make_service(settings)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        await service.start()
        upkeep = asyncio.create_task(keep_up(service))
        logs.note("started", model=service.conversations.model_fingerprint)
        yield
        upkeep.cancel()
        with suppress(asyncio.CancelledError):
            await upkeep
        await service.stop()

    app = FastAPI(
        title="PEAR",
        version=pear.__version__,
        description=DESCRIPTION,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/v1/openapi.json",
    )
    app.state.service = service
    app.include_router(api.router)
    app.include_router(api_lender.router)
    app.include_router(pages.router, include_in_schema=False)
    app.include_router(pages_actions.router, include_in_schema=False)
    app.include_router(pages_lender.router, include_in_schema=False)
    app.mount("/static", StaticFiles(directory=str(_folder("static"))), name="static")
    _add_probes(app, service)
    _add_errors(app)
    _describe(app)
    app.add_middleware(
        Around, metrics=service.metrics, max_body=settings.max_body, answer=answer_error
    )
    return app


def from_environment() -> FastAPI:
    """The application with the settings that ``pear serve`` put into the environment."""
    return create_app(Settings.from_environment())


def _folder(name: str) -> Any:
    return resources.files("pear.service") / name


def _add_probes(app: FastAPI, service: Service) -> None:
    @app.get("/healthz", tags=["operation"])
    async def health() -> dict[str, str]:
        """The process lives."""
        return {"status": "ok"}

    @app.get("/readyz", tags=["operation"])
    async def ready() -> dict[str, str]:
        """Database and searchers are there."""
        if not service.ready:
            raise ServiceError(503, "The service is starting.", {"Retry-After": "2"})
        try:
            await run_in_threadpool(service.database.ping)
        except Exception:
            raise ServiceError(503, "The database does not answer.", {"Retry-After": "5"}) from None
        return {"status": "ready"}

    @app.get("/metrics", tags=["operation"], response_class=PlainTextResponse)
    async def metrics() -> str:
        """Counts and durations in Prometheus' text format."""
        stages = await run_in_threadpool(service.store.stages)
        return service.metrics.text(
            {
                "pear_conversations": {(("stage", s),): n for s, n in sorted(stages.items())},
                "pear_searches_waiting": {(): service.searchers.waiting()},
                "pear_searcher_restarts_total": {(): service.searchers.restarts()},
                "pear_ready": {(): float(service.ready)},
            }
        )


def answer_error(request: Request, error: ServiceError) -> Response:
    """The one shape of errors: a page for browsers, ``application/problem+json`` otherwise."""
    request_id = request.state.request_id
    if pages_errors.wants_page(request):
        return pages_errors.error_page(request, error)
    return JSONResponse(
        error.details(request_id),
        error.status,
        headers=dict(error.headers or {}),
        media_type=MEDIA_TYPE,
    )


def _add_errors(app: FastAPI) -> None:
    @app.exception_handler(ServiceError)
    async def ours(request: Request, error: ServiceError) -> Response:
        return answer_error(request, error)

    @app.exception_handler(PearError)
    async def known(request: Request, error: PearError) -> Response:
        found = from_pear_error(error)
        if isinstance(error, Busy):
            request.app.state.service.metrics.refuse()
        if found.status >= 500:
            facts = {"why": str(error)} if isinstance(error, WorkerFailed) else {}
            logs.note("error", level=logging.ERROR, exc_info=error, **facts)
        return answer_error(request, found)

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> Response:
        words = {
            404: "There is nothing at this address.",
            405: "This address does not take requests of this kind.",
        }
        detail = words.get(error.status_code, str(error.detail))
        return answer_error(request, ServiceError(error.status_code, detail, error.headers))

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        places = [
            (".".join(str(part) for part in item["loc"][1:])[:200] or "body", item["msg"])
            for item in error.errors()[:50]
        ]
        detail = "Something in the request does not have the form described in the API."
        return answer_error(request, ServiceError(422, detail, errors=places))


def _describe(app: FastAPI) -> None:
    """One shape of errors in the OpenAPI description, too."""
    describe = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema:
            return app.openapi_schema
        schema = describe()
        parts = schema.setdefault("components", {}).setdefault("schemas", {})
        details = ProblemDetails.model_json_schema(ref_template="#/components/schemas/{model}")
        parts.update(details.pop("$defs", {}))
        parts["ProblemDetails"] = details
        for unused in ("HTTPValidationError", "ValidationError"):
            parts.pop(unused, None)
        schema["components"]["securitySchemes"] = {
            "lender": {"type": "http", "scheme": "bearer", "description": "A lender's key."}
        }
        for operations in schema["paths"].values():
            for operation in operations.values():
                if "the lender" in operation.get("tags", ()):
                    operation["security"] = [{"lender": []}]
        return schema

    app.openapi = openapi  # type: ignore[method-assign]
