"""Is this form one of ours? Its fields, once its token fits."""

from __future__ import annotations

from collections.abc import Callable

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from pear.service.errors import ServiceError
from pear.service.security import new_token
from pear.service.service import Service

VISITOR = "pear_visitor"
"""Cookie of a visitor without a link: forms on the first page and the sign-in belong to it."""

MOST_FIELDS = 600


async def form_of(service: Service, request: Request, subject: str) -> dict[str, str]:
    """The fields of a form about a subject; a form that is not from us changes nothing."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in ("application/x-www-form-urlencoded", "multipart/form-data"):
        raise ServiceError(415, "Send this as a form.")
    try:
        form = await request.form(max_files=0, max_fields=MOST_FIELDS)
    except HTTPException:
        raise ServiceError(400, "The form cannot be read.") from None
    fields = {name: value for name, value in form.items() if isinstance(value, str)}
    if not subject or not service.forms.fits(fields.get("csrf", ""), subject):
        raise ServiceError(403, "The form's token does not fit; load the page again.")
    return fields


def cookie_subject(request: Request) -> str:
    """What forms without a link belong to: the visitor's cookie."""
    visitor = request.cookies.get(VISITOR, "")
    return f"visitor:{visitor}" if visitor else ""


def sealed(service: Service, request: Request, render: Callable[[str], Response]) -> Response:
    """A page whose forms belong to this visitor, who gets a cookie if there is none yet."""
    visitor = request.cookies.get(VISITOR, "")
    fresh = not visitor or len(visitor) > 100
    if fresh:
        visitor = new_token()
    response = render(service.forms.token(f"visitor:{visitor}"))
    if fresh:
        set_cookie(service, response, VISITOR, visitor)
    return response


def set_cookie(service: Service, response: Response, name: str, value: str) -> None:
    """A cookie that scripts cannot read and other sites cannot use."""
    response.set_cookie(
        name,
        value,
        httponly=True,
        samesite="strict",
        secure=service.settings.secure_cookies,
        path="/",
    )
