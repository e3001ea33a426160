"""What does a connection get before it has sent a request? Little time, and a place among few.

A client that opens connections and says nothing, or says it one byte at a time, is ended before it
costs anyone else anything: what waits longest without a request goes first when there are too many.
"""

from __future__ import annotations

import asyncio
import resource
from collections import OrderedDict
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

SPARE_FILES = 200
"""Open files kept for the database, searchers and the log."""

BACKLOG = 128


class Limits:
    """Limits of the connections of one web process, from its settings."""

    header_seconds = 10.0
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


def limit(header_seconds: float, most_connections: int) -> None:
    """Set the limits of this process, and use as many open files as the system allows it."""
    LIMITS.header_seconds, LIMITS.most_connections = header_seconds, most_connections
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


class Guarded(H11Protocol):
    """A connection that must send each request within a time, and gives way when there are many."""

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        LIMITS.open.add(id(self))
        self._listen()
        if len(LIMITS.open) > LIMITS.most:
            next(iter(LIMITS.silent.values()))._end()

    def connection_lost(self, exc: Exception | None) -> None:
        LIMITS.open.discard(id(self))
        self._heard()
        super().connection_lost(exc)

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
        if not self._answering and self.transport is not None:
            LIMITS.open.discard(id(self))
            self.transport.abort()
