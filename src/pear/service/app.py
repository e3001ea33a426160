"""How do the parts become one web application, and what does it answer when something is wrong?"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from importlib import resources
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from sqlalchemy.exc import SQLAlchemyError
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse
from starlette.staticfiles import StaticFiles

import pear
from pear.errors import (
    ConversationError,
    EndpointFailed,
    InvalidInput,
    InvalidProblem,
    PearError,
    WorkerFailed,
)
from pear.service import api, operation, pages
from pear.service.conversations import ServedElsewhere, Stale
from pear.service.engine import Busy, ModelReplaced, SearchTooLong
from pear.service.lender import api as lender_api
from pear.service.lender import pages as lender_pages
from pear.service.lender.staff import SignIn
from pear.service.operation import ServiceMiddleware, note
from pear.service.schemas import MEDIA_TYPE, UNKNOWN, ProblemDetails, ServiceError, retry_later
from pear.service.service import (
    PinNeeded,
    Service,
    make_service,
    page,
    reference_of,
    service_of,
    words_of,
)
from pear.service.settings import Settings
from pear.service.store.database import Conflict, DatabaseUnavailable, ReplayMismatch
from pear.service.store.upkeep import run_upkeep

DESCRIPTION = """
A person refused by a classifier answers a few questions and receives the plan that is
easiest *for them*: by what they told us, among the steps considered, for this version of
the model. Every error has the shape `ProblemDetails` and the type `application/problem+json`.
"""


PROBE_SECONDS = 10.0
"""How long a searcher may take to answer a probe."""


def create_app(settings: Settings, service: Service | None = None) -> FastAPI:
    """The application of one service."""
    operation.set_up(settings.log_level)
    service = service or make_service(settings)
    if settings.oidc_issuer and service.sign_in is None:
        service.sign_in = SignIn(settings)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        await service.start()
        upkeep = asyncio.create_task(run_upkeep(service))
        note("started", model=service.conversations.serves[1])
        yield
        # Before Python 3.12 a wait_for that ends just then swallows a cancellation.
        while not upkeep.done():
            upkeep.cancel()
            await asyncio.wait([upkeep], timeout=1.0)
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
    app.include_router(lender_api.router)
    for part in (pages.router, lender_pages.router, api.description):
        app.include_router(part, include_in_schema=False)
    app.mount(
        "/static",
        StaticFiles(directory=str(resources.files("pear.service") / "static")),
        name="static",
    )
    _add_probes(app, service)
    _add_errors(app)
    _describe(app)
    app.add_middleware(
        ServiceMiddleware,
        settings=service.settings,
        metrics=service.metrics,
        traces=service.traces,
        answer=answer_error,
    )
    return app


def from_environment() -> FastAPI:
    """The application with the settings of the environment, where ``pear serve`` put them."""
    settings = Settings.read()
    operation.limit(settings.header_seconds, settings.body_seconds, settings.most_connections)
    return create_app(settings)


def _add_probes(app: FastAPI, service: Service) -> None:
    @app.get("/healthz", tags=["running the service"])
    async def health() -> dict[str, str]:
        """The process lives."""
        return {"status": "ok"}

    @app.get("/readyz", tags=["running the service"])
    async def ready() -> dict[str, str]:
        """The database can be read and written, and a searcher answers."""
        if not service.ready:
            raise ServiceError(503, "The service is starting.", {"Retry-After": "2"})
        try:
            await service.database.run(service.database.ping)
            latest = await service.database.run(service.store.latest_served)
        except Exception:
            raise retry_later(503, "The database does not answer.", 5) from None
        if latest not in (None, service.conversations.serves):
            raise retry_later(503, "A newer version of the model is served elsewhere.", 30)
        try:
            await asyncio.wait_for(service.searchers.run("", "facts"), PROBE_SECONDS)
        except Busy:
            pass  # they all work
        except (PearError, TimeoutError):
            raise retry_later(503, "No searcher answers.", 5) from None
        return {"status": "ready"}

    @app.get("/metrics", tags=["running the service"], response_class=Response)
    async def metrics() -> Response:
        """Counts and durations in Prometheus' text format."""
        return Response(service.metrics.text(), media_type="text/plain; version=0.0.4")


def answer_error(request: Request, error: ServiceError) -> Response:
    """The one shape of errors: a page for browsers, ``application/problem+json`` otherwise."""
    if _wants_page(request):
        return _error_page(request, error)
    return JSONResponse(
        error.details(request.state.request_id),
        error.status,
        headers=dict(error.headers or {}),
        media_type=MEDIA_TYPE,
    )


def _wants_page(request: Request) -> bool:
    """Whether an error is to be shown as a page: to browsers, outside the API."""
    if request.url.path.startswith("/api/"):
        return False
    return "text/html" in request.headers.get("accept", "")


def _error_page(request: Request, error: ServiceError) -> Response:
    """An error as a page, in words that say what to do."""
    texts = words_of(request).texts
    token = str(request.path_params.get("token", ""))
    if isinstance(error, PinNeeded):
        return pages.pin_page(request, token, chosen=error.chosen)
    if error.status == 401:
        return RedirectResponse("/lender", 303)
    name = str(error.status) if f"error.title_{error.status}" in texts else "other"
    seconds = (error.headers or {}).get("Retry-After", "5")
    gone = error.status in (404, 410)
    response = page(
        request,
        "error.html",
        error.status,
        title=texts(f"error.title_{name}"),
        said_of_it=texts(f"error.text_{name}", seconds=seconds),
        errors=error.errors,
        ended=error.status == 410,
        home=gone,
        again=f"/c/{token}/now" if token and not gone else "/",
        reference=reference_of(error.case or request.state.request_id),
    )
    for header, value in (error.headers or {}).items():
        response.headers[header] = value
    return response


def _add_errors(app: FastAPI) -> None:
    @app.exception_handler(ServiceError)
    async def ours(request: Request, error: ServiceError) -> Response:
        if error.status == 429:
            await service_of(request).hold()
        return answer_error(request, error)

    @app.exception_handler(PearError)
    async def known(request: Request, error: PearError) -> Response:
        found = _from_ours(request, error)
        if found.headers and "Retry-After" in found.headers:
            service_of(request).metrics.refuse()
        if found.status >= 500 and not isinstance(error, Busy):
            facts = {"why": str(error)} if isinstance(error, WorkerFailed) else {}
            note("error", level=logging.ERROR, exc_info=error, **facts)
        return answer_error(request, found)

    @app.exception_handler(SQLAlchemyError)
    async def stored(request: Request, error: SQLAlchemyError) -> Response:
        note("database", level=logging.ERROR, exc_info=error)
        return answer_error(request, _no_database())

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


def _from_ours(request: Request, error: PearError) -> ServiceError:
    """Which answer an error of ours becomes; what is no one's input is a 500 without details."""
    if isinstance(error, Stale):
        present = api.conversation(request, error.view)
        return ServiceError(409, str(error), present=present.model_dump(mode="json"))
    if isinstance(error, Conflict | ConversationError):
        return ServiceError(409, str(error))
    if isinstance(error, Busy):
        return retry_later(503, str(error), error.seconds)
    if isinstance(error, SearchTooLong | WorkerFailed | ModelReplaced | ServedElsewhere):
        return retry_later(503, str(error), 5)
    if isinstance(error, DatabaseUnavailable):
        return _no_database()
    if isinstance(error, EndpointFailed):
        return retry_later(503, "the lender's model did not answer; try again later", 30)
    if isinstance(error, ReplayMismatch):
        return ServiceError(422, str(error))
    if isinstance(error, InvalidInput) and not isinstance(error, InvalidProblem):
        return ServiceError(422, str(error))
    return ServiceError(500, UNKNOWN)


def _no_database() -> ServiceError:
    words = "The database does not answer; whether anything was stored is not known. Read again."
    return retry_later(503, words, 5)


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
        for route in schema["paths"].values():
            for described in route.values():
                if "the lender" in described.get("tags", ()):
                    described["security"] = [{"lender": []}]
        return schema

    app.openapi = openapi  # type: ignore[method-assign]
