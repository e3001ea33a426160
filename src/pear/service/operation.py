"""What does whoever runs the service see of it, and how is it kept from being held up?

One line for each request, counts, and traces where they are wanted: routes, status codes, times and
the numbers of conversations, never an address, which is its conversation's secret, and never
anyone's data. A connection gets little time until it has sent a request, and a place among few: a
client that opens connections and says nothing, or says it one byte at a time, is ended before it
costs anyone else anything. What waits longest without a request goes first when there are too many.
"""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import sys
import traceback
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from pythonjsonlogger.json import JsonFormatter
from uvicorn.protocols.http.h11_impl import H11Protocol

from pear.optional import require

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
        """Send what is still to be sent."""
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
        """Note how things stand in this process."""
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
        self.silent: OrderedDict[int, Guarded] = OrderedDict()
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


class Guarded(H11Protocol):
    """A connection that must send each request within a time, and gives way when there are many.

    One that takes nothing of its answer for as long as a body may take is ended, too.
    """

    _timer: asyncio.TimerHandle | None = None
    _taking: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        LIMITS.open.add(id(self))
        self._listen()
        if len(LIMITS.open) > LIMITS.most:
            next(iter(LIMITS.silent.values()))._end()

    def connection_lost(self, exc: Exception | None) -> None:
        LIMITS.open.discard(id(self))
        self._heard()
        self._taken()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._taking = self.loop.call_later(LIMITS.body_seconds, self._abort)

    def resume_writing(self) -> None:
        self._taken()
        super().resume_writing()

    def _taken(self) -> None:
        if self._taking is not None:
            self._taking.cancel()
            self._taking = None

    def data_received(self, data: bytes) -> None:
        if not self._answering and self._timer is None:
            self._listen()
        super().data_received(data)
        if self._answering:
            self._heard()

    @property
    def _answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _listen(self) -> None:
        """A request must come from now on."""
        LIMITS.silent[id(self)] = self
        self._timer = self.loop.call_later(LIMITS.header_seconds, self._end)

    def _heard(self) -> None:
        LIMITS.silent.pop(id(self), None)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end(self) -> None:
        self._heard()
        if not self._answering:
            self._abort()

    def _abort(self) -> None:
        if self.transport is not None:
            LIMITS.open.discard(id(self))
            self.transport.abort()
