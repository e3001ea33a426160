"""How do the parts become one web application, and what happens around every request?"""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from importlib import resources
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from sqlalchemy.exc import SQLAlchemyError
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

import pear
from pear.errors import (
    ConversationError,
    EndpointFailed,
    InvalidInput,
    InvalidProblem,
    PearError,
    WorkerFailed,
)
from pear.service import api, lender, lender_pages, operation, pages, staff
from pear.service.access import ReplayMismatch
from pear.service.conversations import ServedElsewhere, Stale
from pear.service.database import DatabaseUnavailable
from pear.service.operation import note
from pear.service.schemas import MEDIA_TYPE, ProblemDetails, ServiceError, retry_later
from pear.service.service import PinNeeded, Service, keep_up, make_service, service_of
from pear.service.settings import Settings
from pear.service.store import Conflict
from pear.service.words import page, presenter_of, reference_of
from pear.service.workers import Busy, ModelReplaced, SearchTooLong

DESCRIPTION = """
A person refused by a classifier answers a few questions and receives the plan that is
easiest *for them*: by what they told us, among the steps considered, for this version of
the model. Every error has the shape `ProblemDetails` and the type `application/problem+json`.
"""


HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


UNKNOWN = "Something went wrong on our side; read again what was stored before you go on."
"""Never that nothing was changed: that is not known once something unforeseen happened."""

PROBES = ("/healthz", "/readyz", "/metrics")
"""Asked by whatever address the machine has."""

PROBE_SECONDS = 10.0
"""How long a searcher may take to answer a probe."""

STATIC_AGE = "public, max-age=86400"
"""Style and scripts may be kept: their addresses carry the version of the package."""


def create_app(settings: Settings, service: Service | None = None) -> FastAPI:
    """The application of one service."""
    operation.set_up(settings.log_level)
    service = service or make_service(settings)
    if settings.oidc_issuer and service.sign_in is None:
        service.sign_in = staff.SignIn(settings)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        await service.start()
        upkeep = asyncio.create_task(keep_up(service))
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
    app.include_router(lender.api)
    for part in (pages.router, lender_pages.router, staff.router, api.description):
        app.include_router(part, include_in_schema=False)
    app.mount("/static", StaticFiles(directory=str(_folder("static"))), name="static")
    _add_probes(app, service)
    _add_errors(app)
    _describe(app)
    app.add_middleware(Around, service=service)
    return app


def from_environment() -> FastAPI:
    """The application with the settings of the environment, where ``pear serve`` put them."""
    settings = Settings.read()
    operation.limit(settings.header_seconds, settings.body_seconds, settings.most_connections)
    return create_app(settings)


def _folder(name: str) -> Any:
    return resources.files("pear.service") / name


def _add_probes(app: FastAPI, service: Service) -> None:
    @app.get("/healthz", tags=["operation"])
    async def health() -> dict[str, str]:
        """The process lives."""
        return {"status": "ok"}

    @app.get("/readyz", tags=["operation"])
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

    @app.get("/metrics", tags=["operation"], response_class=Response)
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
    texts = presenter_of(request).texts
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
        reference=reference_of(request.state.request_id),
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
        present = presenter_of(request).conversation(error.view)
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


class _Refused(HTTPException):
    """Raised while a body is read; of this kind, since others are taken for bad JSON."""

    @classmethod
    def too_large(cls, most: int) -> _Refused:
        detail = f"The request is larger than {most:,} bytes; nothing was changed."
        return cls(413, detail, {"Connection": "close"})

    @classmethod
    def too_slow(cls) -> _Refused:
        detail = "The request took too long to arrive; nothing was changed."
        return cls(408, detail, {"Connection": "close"})


class Around:
    """The one middleware: everything that holds for every route."""

    def __init__(self, app: ASGIApp, *, service: Service) -> None:
        self.app, self.service = app, service
        self.max_body = service.settings.max_body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, request_id = time.perf_counter(), _request_id(scope)
        scope.setdefault("state", {})["request_id"] = request_id
        seen: dict[str, Any] = {"status": 500, "started": False}

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                seen.update(status=message["status"], started=True)
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                static = scope["path"].startswith("/static/") and message["status"] < 400
                headers.setdefault("Cache-Control", STATIC_AGE if static else "no-store")
                headers["X-Request-ID"] = request_id
            await send(message)

        with self.service.traces.span(scope["method"], _trace_above(scope)) as span:
            await self._guarded(scope, receive, send_safely, seen)
            route, facts = _route(scope), scope["state"].get("facts", {})
            span.tell(
                f"{scope['method']} {route}",
                failed=seen["status"] >= 500,
                http__request__method=scope["method"],
                http__route=route,
                http__response__status_code=seen["status"],
                pear__request=request_id,
                **{f"pear.{name}": value for name, value in facts.items()},
            )
        seconds = time.perf_counter() - began
        self.service.metrics.observe(scope["method"], route, seen["status"], seconds)
        note(
            "request",
            request=request_id,
            method=scope["method"],
            route=route,
            status=seen["status"],
            ms=round(1000 * seconds, 1),
            **facts,
        )

    async def _guarded(
        self, scope: Scope, receive: Receive, send: Send, seen: Mapping[str, Any]
    ) -> None:
        """The application, within the limits of a request; whatever fails has the one shape."""
        try:
            if not self._known_host(scope):
                raise ServiceError(400, "This service is not reached by that name.")
            if _declared(scope) > self.max_body:
                raise _Refused.too_large(self.max_body)
            await self.app(scope, self._limited(receive), send)
        except ServiceError as failure:
            await self._answer(failure, scope, receive, send, seen["started"])
        except _Refused as failure:
            refused = ServiceError(failure.status_code, failure.detail, failure.headers)
            await self._answer(refused, scope, receive, send, seen["started"])
        except Exception as failure:
            number = scope["state"]["request_id"]
            note("error", level=logging.ERROR, request=number, exc_info=failure)
            error = ServiceError(500, UNKNOWN)
            await self._answer(error, scope, receive, send, seen["started"])

    def _known_host(self, scope: Scope) -> bool:
        """Whether the service is meant: else its links would lead to whoever sent this name."""
        trusted = self.service.settings.trusted_hosts
        if "*" in trusted or scope["path"] in PROBES:
            return True
        stated = next((v for name, v in scope["headers"] if name == b"host"), b"")
        return _name_of(stated.decode("latin-1")) in trusted

    def _limited(self, receive: Receive) -> Receive:
        taken, complete = 0, False
        until = time.monotonic() + self.service.settings.body_seconds

        async def receive_limited() -> Message:
            nonlocal taken, complete
            if complete:
                return await receive()
            try:
                message = await asyncio.wait_for(receive(), max(0.01, until - time.monotonic()))
            except TimeoutError:
                raise _Refused.too_slow() from None
            complete = not message.get("more_body", False)
            taken += len(message.get("body", b""))
            if taken > self.max_body:
                raise _Refused.too_large(self.max_body)
            return message

        return receive_limited

    async def _answer(
        self, error: ServiceError, scope: Scope, receive: Receive, send: Send, started: bool
    ) -> None:
        if not started:
            await answer_error(Request(scope), error)(scope, receive, send)


def _name_of(host: str) -> str:
    """A host without its port: ``a.example:80``, ``[::1]:80``."""
    name, _, port = host.rpartition(":")
    return (name if name and port.isdigit() else host).lower()


def _request_id(scope: Scope) -> str:
    """The number a proxy gave the request, if it is one that may be written to the log."""
    for name, value in scope["headers"]:
        if name == b"x-request-id" and re.fullmatch(rb"[A-Za-z0-9._-]{8,64}", value):
            return str(value.decode())
    return secrets.token_hex(8)


def _trace_above(scope: Scope) -> dict[str, str]:
    """What a request says of the trace it is part of."""
    named = (b"traceparent", b"tracestate")
    return {n.decode(): v.decode("latin-1") for n, v in scope["headers"] if n in named}


def _declared(scope: Scope) -> int:
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit():
            return int(value)
    return 0


def _route(scope: Scope) -> str:
    """The route's pattern, such as ``/c/{token}/question``: never the address itself."""
    route = scope.get("route")
    return str(getattr(route, "path", "(none)"))
