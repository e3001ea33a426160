"""What does a browser show when something is wrong?"""

from __future__ import annotations

from fastapi import Request, Response
from starlette.responses import RedirectResponse

from pear.service.api import service_of
from pear.service.errors import ServiceError
from pear.service.rendering import page


def wants_page(request: Request) -> bool:
    """Whether an error is to be shown as a page: to browsers, outside the API."""
    if request.url.path.startswith("/api/"):
        return False
    return "text/html" in request.headers.get("accept", "")


def error_page(request: Request, error: ServiceError) -> Response:
    """An error as a page, in words that say what to do."""
    service = service_of(request)
    texts = service.texts
    if error.status == 401:
        return RedirectResponse("/lender", 303)
    name = str(error.status) if f"error.title_{error.status}" in texts else "other"
    seconds = (error.headers or {}).get("Retry-After", "5")
    token = str(request.path_params.get("token", ""))
    response = page(
        "error.html",
        texts,
        status=error.status,
        demo=service.settings.demo,
        title=texts(f"error.title_{name}"),
        words=texts(f"error.text_{name}", seconds=seconds),
        errors=error.errors,
        again=f"/c/{token}/now" if token and error.status not in (404, 410) else "/",
        number=request.state.request_id,
    )
    for header, value in (error.headers or {}).items():
        response.headers[header] = value
    return response
