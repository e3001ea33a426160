"""What does the service say when something is wrong? One shape, on every route (RFC 9457)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, Field

MEDIA_TYPE = "application/problem+json"

TITLES = {
    400: "The request cannot be read",
    401: "A key is needed",
    403: "Not allowed",
    404: "Not found",
    405: "Not possible here",
    409: "The conversation has moved on",
    408: "The request took too long",
    410: "This link has ended",
    413: "Too large",
    415: "Not a kind of content we read",
    422: "Something in the request is not right",
    429: "Too many requests",
    500: "Something went wrong on our side",
    503: "Not available right now",
}


class FieldError(BaseModel):
    """What is wrong with one part of a request."""

    field: str = Field(examples=["record.monthly_income"])
    message: str = Field(examples=["'monthly_income' must be at least 0 (got -5)"])


class ProblemDetails(BaseModel):
    """The shape of every error."""

    type: str = Field("about:blank", examples=["about:blank"])
    title: str = Field(examples=["Not found"])
    status: int = Field(examples=[404])
    detail: str = Field(examples=["There is no conversation behind this link."])
    request_id: str = Field("", examples=["3f2a9c1e5b7d4a60"])
    errors: list[FieldError] = []
    present: dict[str, Any] | None = Field(
        None, description="What stands now, where something else was shown (409)."
    )


@dataclass
class ServiceError(Exception):
    """An answer other than success, with what a person or a program can do about it."""

    status: int
    detail: str
    headers: Mapping[str, str] | None = None
    errors: Sequence[tuple[str, str]] = ()
    present: Mapping[str, Any] | None = None

    def details(self, request_id: str) -> dict[str, Any]:
        """The error as plain data for JSON."""
        return ProblemDetails(
            title=TITLES.get(self.status, "Something is not right"),
            status=self.status,
            detail=self.detail,
            request_id=request_id,
            errors=[FieldError(field=field, message=message) for field, message in self.errors],
            present=None if self.present is None else dict(self.present),
        ).model_dump(exclude_none=True)


def not_found(detail: str = "There is no conversation behind this link.") -> ServiceError:
    """The same words for a wrong link and a deleted one: neither is confirmed."""
    return ServiceError(404, detail)


def retry_later(status: int, detail: str, seconds: float) -> ServiceError:
    """An error that says when to try again."""
    return ServiceError(status, detail, {"Retry-After": str(max(1, round(seconds)))})


def responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The errors of a route, for the OpenAPI description."""
    always = {400, 404, 405, 413, 422, 429, 500, 503}
    return {
        status: {
            "description": TITLES[status],
            "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemDetails"}}},
        }
        for status in sorted(always | set(statuses))
    }
