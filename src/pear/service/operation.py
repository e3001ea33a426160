"""What happens around every request, and what does whoever runs the service see of it?

One line for each request, counts, and traces where they are wanted: routes, status codes, times and
the numbers of conversations, never an address, which is its conversation's secret, and never
anyone's data. A request has limits of size and time. A connection gets little time until it has
sent a request, and a place among few: a client that opens connections and says nothing, or says it
one byte at a time, is ended before it costs anyone else anything. What waits longest without a
request goes first when there are too many.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import resource
import secrets
import sys
import time
import traceback
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from pythonjsonlogger.json import JsonFormatter
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from pear.optional import require
from pear.service.schemas import UNKNOWN, ServiceError
from pear.service.settings import Settings

LOGGER = logging.getLogger("pear.service")

SHARED_COUNTS = "PROMETHEUS_MULTIPROC_DIR"
"""The environment variable that names the folder where several web processes count together."""


class JsonLines(JsonFormatter):
    """Each record as one JSON object; of an error its kind and place, never its words."""

    def add_fields(
        self, log_data: dict[str, Any], record: logging.LogRecord, message_dict: dict[str, Any]
    ) -> None:
        log_data["at"] = self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z")
        log_data["level"] = record.levelname.lower()
        log_data["event"] = record.getMessage()
        log_data.update(getattr(record, "facts", {}))
        if record.exc_info and record.exc_info[0] is not None:
            frames = traceback.extract_tb(record.exc_info[2])[-6:]
            log_data["error"] = record.exc_info[0].__name__
            log_data["where"] = [f"{f.filename.rpartition('/')[2]}:{f.lineno}" for f in frames]


def set_up(level: str = "info") -> None:
    """Send our lines to standard error, once."""
    if not any(isinstance(handler.formatter, JsonLines) for handler in LOGGER.handlers):
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(JsonLines(json_ensure_ascii=False))
        LOGGER.addHandler(handler)
    LOGGER.setLevel(level.upper())
    LOGGER.propagate = False


def note(event: str, *, level: int = logging.INFO, exc_info: Any = None, **facts: Any) -> None:
    """Write one line; the facts must hold no feature value and no token."""
    LOGGER.log(level, event, extra={"facts": facts}, exc_info=exc_info)


class Traces:
    """Spans of requests and searches, sent to a collector; without an address there are none.

    Ours and not an instrumentation's: a span names the route, never the address, which is the
    secret of its conversation. ``exporter`` takes the spans where none are to be sent.
    """

    def __init__(self, address: str = "", exporter: Any = None) -> None:
        self._tracer: Any = None
        if not address and exporter is None:
            return
        trace = require("opentelemetry.sdk.trace")
        export = require("opentelemetry.sdk.trace.export")
        resources = require("opentelemetry.sdk.resources")
        if exporter is None:
            http = require("opentelemetry.exporter.otlp.proto.http.trace_exporter")
            exporter = http.OTLPSpanExporter(endpoint=address)
        named = resources.Resource.create({"service.name": "pear"})
        self._provider = trace.TracerProvider(resource=named)
        self._provider.add_span_processor(export.BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("pear.service")

    @contextmanager
    def span(self, name: str, headers: Mapping[str, str] | None = None) -> Iterator[Span]:
        """A span below the one at work, or below the one that ``headers`` of a request name."""
        if self._tracer is None:
            yield Span(None)
            return
        api = require("opentelemetry.trace")
        above = None
        if headers is not None:
            above = require("opentelemetry.propagate").extract(headers)
        kind = api.SpanKind.INTERNAL if headers is None else api.SpanKind.SERVER
        # An error's words may hold someone's data: it is named by its kind, by who catches it.
        with self._tracer.start_as_current_span(
            name, above, kind, record_exception=False, set_status_on_exception=False
        ) as span:
            yield Span(span)

    def stop(self) -> None:
        """Send the spans that are still to be sent."""
        if self._tracer is not None:
            self._provider.shutdown()


@dataclass(frozen=True)
class Span:
    """One span, or none."""

    span: Any

    def tell(self, name: str = "", *, failed: bool = False, **facts: Any) -> None:
        """Facts about it; they must hold no feature value and no token."""
        if self.span is None:
            return
        if name:
            self.span.update_name(name)
        self.span.set_attributes({key.replace("__", "."): v for key, v in facts.items()})
        if failed:
            api = require("opentelemetry.trace")
            self.span.set_status(api.StatusCode.ERROR)


class Metrics:
    """Counts and times of this web process and, where several count together, of all of them.

    >>> metrics = Metrics()
    >>> metrics.observe("GET", "/healthz", 200, 0.004)
    >>> b'pear_requests_total{method="GET",route="/healthz",status="200"} 1.0' in metrics.text()
    True
    """

    def __init__(self) -> None:
        self._own = CollectorRegistry()
        self._requests = Counter(
            "pear_requests", "Requests.", ["method", "route", "status"], registry=self._own
        )
        self._seconds = Histogram(
            "pear_request_seconds", "Time from request to answer.", ["route"], registry=self._own
        )
        self._refused = Counter(
            "pear_refused", "Requests told to come back later.", registry=self._own
        )
        self._happened = Counter(
            "pear_events", "What people did, by kind.", ["kind"], registry=self._own
        )
        self._waiting = _gauge("pear_searches_waiting", "Searches at work or waiting.", self._own)
        self._restarts = _gauge("pear_searcher_restarts", "Searchers replaced.", self._own)
        self._ready = _gauge("pear_ready", "Web processes that are ready.", self._own)

    def observe(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one request."""
        self._requests.labels(method, route, status).inc()
        self._seconds.labels(route).observe(seconds)

    def refuse(self) -> None:
        """Count one request that was told to come back later."""
        self._refused.inc()

    def happened(self, kind: str) -> None:
        """Count one thing done in a conversation."""
        self._happened.labels(kind).inc()

    def now(self, *, waiting: int, restarts: int, ready: bool) -> None:
        """Record the current figures of this process."""
        self._waiting.set(waiting)
        self._restarts.set(restarts)
        self._ready.set(ready)

    def text(self) -> bytes:
        """Everything in Prometheus' text format."""
        if SHARED_COUNTS not in os.environ:
            return generate_latest(self._own)
        together = CollectorRegistry()
        MultiProcessCollector(together)  # type: ignore[no-untyped-call]
        return generate_latest(together)


def _gauge(name: str, words: str, registry: CollectorRegistry) -> Gauge:
    return Gauge(name, words, registry=registry, multiprocess_mode="livesum")


# Requests


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


PROBES = ("/healthz", "/readyz", "/metrics")
"""Asked by whatever address the machine has."""

STATIC_AGE = "public, max-age=86400"
"""Style and scripts may be kept: their addresses carry the version of the package."""


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


class ServiceMiddleware:
    """The one middleware: everything that holds for every route; ``answer`` says what is wrong."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        settings: Settings,
        metrics: Metrics,
        traces: Traces,
        answer: Callable[[Request, ServiceError], Response],
    ) -> None:
        self.app, self.settings, self.metrics, self.traces = app, settings, metrics, traces
        self.answer = answer

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

        with self.traces.span(scope["method"], _trace_above(scope)) as span:
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
        self.metrics.observe(scope["method"], route, seen["status"], seconds)
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
            if _declared(scope) > self.settings.max_body:
                raise _Refused.too_large(self.settings.max_body)
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
        """Whether the host is the service's: otherwise its links would lead to whoever sent the
        name."""
        trusted = self.settings.trusted_hosts
        if "*" in trusted or scope["path"] in PROBES:
            return True
        stated = next((v for name, v in scope["headers"] if name == b"host"), b"")
        return _name_of(stated.decode("latin-1")) in trusted

    def _limited(self, receive: Receive) -> Receive:
        taken, complete = 0, False
        until = time.monotonic() + self.settings.body_seconds

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
            if taken > self.settings.max_body:
                raise _Refused.too_large(self.settings.max_body)
            return message

        return receive_limited

    async def _answer(
        self, error: ServiceError, scope: Scope, receive: Receive, send: Send, started: bool
    ) -> None:
        if not started:
            await self.answer(Request(scope), error)(scope, receive, send)


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


# Connections


SPARE_FILES = 200
"""Open files kept for the database, searchers and the log."""

BACKLOG = 128


class Limits:
    """Limits of the connections of one web process, from its settings."""

    header_seconds = 10.0
    body_seconds = 20.0
    most_connections = 1000

    def __init__(self) -> None:
        self.silent: OrderedDict[int, GuardedConnection] = OrderedDict()
        self.open: set[int] = set()

    @property
    def most(self) -> int:
        """Most connections at once: as many as set, and as the system has files for."""
        files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        return max(10, min(self.most_connections, files - SPARE_FILES))


LIMITS = Limits()


def limit(header_seconds: float, body_seconds: float, most_connections: int) -> None:
    """Set the limits of this process, and use as many open files as the system allows it."""
    LIMITS.header_seconds, LIMITS.body_seconds = header_seconds, body_seconds
    LIMITS.most_connections = most_connections
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


class GuardedConnection(H11Protocol):
    """A connection that must send each request within a time, and gives way when there are many.

    One that takes nothing of its answer for as long as a body may take is ended, too.
    """

    _header_timer: asyncio.TimerHandle | None = None
    _body_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        LIMITS.open.add(id(self))
        self._start_header_timer()
        if len(LIMITS.open) > LIMITS.most:
            next(iter(LIMITS.silent.values()))._end_if_silent()

    def connection_lost(self, exc: Exception | None) -> None:
        LIMITS.open.discard(id(self))
        self._stop_header_timer()
        self._stop_body_timer()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._body_timer = self.loop.call_later(LIMITS.body_seconds, self._abort)

    def resume_writing(self) -> None:
        self._stop_body_timer()
        super().resume_writing()

    def _stop_body_timer(self) -> None:
        if self._body_timer is not None:
            self._body_timer.cancel()
            self._body_timer = None

    def data_received(self, data: bytes) -> None:
        if not self._answering and self._header_timer is None:
            self._start_header_timer()
        super().data_received(data)
        if self._answering:
            self._stop_header_timer()

    @property
    def _answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _start_header_timer(self) -> None:
        """A request must come from now on."""
        LIMITS.silent[id(self)] = self
        self._header_timer = self.loop.call_later(LIMITS.header_seconds, self._end_if_silent)

    def _stop_header_timer(self) -> None:
        LIMITS.silent.pop(id(self), None)
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

    def _end_if_silent(self) -> None:
        self._stop_header_timer()
        if not self._answering:
            self._abort()

    def _abort(self) -> None:
        if self.transport is not None:
            LIMITS.open.discard(id(self))
            self.transport.abort()
