"""What does whoever runs the service see of it? One line for each request, and counts.

Routes, status codes, times and the numbers of conversations: never an address, which is its
conversation's secret, and never anyone's data.
"""

from __future__ import annotations

import logging
import os
import sys
import traceback
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from pythonjsonlogger.json import JsonFormatter

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
