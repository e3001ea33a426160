"""What happens around every request: its number, its size, safe headers, the log line."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable
from typing import Any

from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request as StarletteRequest
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pear.service.errors import ServiceError
from pear.service.logs import note
from pear.service.metrics import Metrics

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


STATIC_AGE = "public, max-age=86400"
"""Style and scripts may be kept: their addresses carry the version of the package."""

ErrorAnswer = Callable[[StarletteRequest, ServiceError], Response]
"""Makes the answer to a failed request: a page for browsers, JSON for programs."""


class _TooLarge(HTTPException):
    """Raised while a body is read; of this kind, since others are taken for bad JSON."""

    def __init__(self, most: int) -> None:
        detail = f"The request is larger than {most:,} bytes; nothing was changed."
        super().__init__(413, detail, {"Connection": "close"})


class Around:
    """The one middleware: everything that holds for every route."""

    def __init__(
        self, app: ASGIApp, *, metrics: Metrics, max_body: int, answer: ErrorAnswer
    ) -> None:
        self.app, self.metrics, self.max_body, self.answer = app, metrics, max_body, answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, request_id = time.perf_counter(), secrets.token_hex(8)
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

        try:
            if _declared(scope) > self.max_body:
                raise _TooLarge(self.max_body)
            await self.app(scope, self._limited(receive), send_safely)
        except _TooLarge as failure:
            error = ServiceError(413, failure.detail, failure.headers)
            await self._answer(error, scope, receive, send_safely, seen["started"])
        except Exception as failure:  # whatever it is, the answer has the one shape
            note("error", level=logging.ERROR, request=request_id, exc_info=failure)
            error = ServiceError(500, "Something went wrong on our side; nothing was changed.")
            await self._answer(error, scope, receive, send_safely, seen["started"])
        finally:
            seconds = time.perf_counter() - began
            route = _route(scope)
            self.metrics.observe(scope["method"], route, seen["status"], seconds)
            note(
                "request",
                request=request_id,
                method=scope["method"],
                route=route,
                status=seen["status"],
                ms=round(1000 * seconds, 1),
                **scope["state"].get("facts", {}),
            )

    def _limited(self, receive: Receive) -> Receive:
        taken = 0

        async def receive_limited() -> Message:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > self.max_body:
                raise _TooLarge(self.max_body)
            return message

        return receive_limited

    async def _answer(
        self, error: ServiceError, scope: Scope, receive: Receive, send: Send, started: bool
    ) -> None:
        if not started:
            await self.answer(StarletteRequest(scope), error)(scope, receive, send)


def _declared(scope: Scope) -> int:
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit():
            return int(value)
    return 0


def _route(scope: Scope) -> str:
    """The route's pattern, such as ``/c/{token}/question``: never the address itself."""
    route = scope.get("route")
    return str(getattr(route, "path", "(none)"))
