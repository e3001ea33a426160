"""What can a program ask for? The API's description as a page, from the same source as OpenAPI.

Nothing is loaded from elsewhere: the page is made here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from fastapi import APIRouter, Request, Response

from pear.service.rendering import page

router = APIRouter()

Schema = Mapping[str, Any]

ORDER = ("the person", "the lender", "everyone", "demonstration", "operation")
"""Kinds of routes, in the order of the page."""


@router.get("/api")
async def reference(request: Request) -> Response:
    """The API for people who write programs."""
    description = request.app.openapi()
    groups = _groups(description)
    errors = _fields(description, {"$ref": "#/components/schemas/ProblemDetails"})
    return page(request, "reference.html", groups=groups, errors=errors, about=description["info"])


def _groups(description: Schema) -> list[dict[str, Any]]:
    """The routes by their kind."""
    found: dict[str, list[dict[str, Any]]] = {}
    for path, methods in description["paths"].items():
        for method, route in methods.items():
            kind = (route.get("tags") or ["everyone"])[0]
            found.setdefault(kind, []).append(_route(description, path, method, route))
    return [{"name": kind, "routes": found[kind]} for kind in ORDER if kind in found]


def _route(description: Schema, path: str, method: str, route: Schema) -> dict[str, Any]:
    body = _content(route.get("requestBody", {}))
    answers = {status: _content(answer) for status, answer in route["responses"].items()}
    status, answer = next(
        ((status, content) for status, content in answers.items() if status.startswith("2")),
        ("200", None),
    )
    return {
        "id": f"{method}-{path.strip('/').replace('/', '-').replace('{', '').replace('}', '')}",
        "path": path,
        "method": method.upper(),
        "summary": (route.get("description") or route.get("summary", "")).replace("``", ""),
        "key": bool(route.get("security")),
        "parameters": [
            {
                "name": parameter["name"],
                "type": _type(parameter.get("schema", {})),
                "required": parameter.get("required", False),
                "about": parameter.get("description", ""),
            }
            for parameter in route.get("parameters", ())
        ],
        "body": list(_fields(description, body)) if body else [],
        "example": json.dumps(_example(description, body), indent=2, ensure_ascii=False)
        if body
        else "",
        "status": status,
        "answer": list(_fields(description, answer)) if answer else [],
        "statuses": [status for status in answers if not status.startswith("2")],
    }


def _content(part: Schema) -> Schema | None:
    """The schema of a request's or an answer's JSON."""
    schema: Schema | None = part.get("content", {}).get("application/json", {}).get("schema")
    return schema


def _named(description: Schema, schema: Schema) -> Schema:
    """A schema itself where only its name is given."""
    name = schema.get("$ref", "").rpartition("/")[2]
    found: Schema = description["components"]["schemas"][name] if name else schema
    return found


def _fields(description: Schema, schema: Schema) -> Iterator[dict[str, Any]]:
    """The fields of an object, with what each holds."""
    whole = _named(description, schema)
    if whole.get("type") == "array":
        whole = _named(description, whole["items"])
    needed = whole.get("required", ())
    for name, field in whole.get("properties", {}).items():
        yield {
            "name": name,
            "type": _type(field),
            "required": name in needed,
            "about": field.get("description", ""),
        }


def _type(schema: Schema) -> str:
    """What a value is, in a word or two."""
    if name := schema.get("$ref", "").rpartition("/")[2]:
        return str(name)
    if options := schema.get("anyOf") or schema.get("oneOf"):
        return " | ".join(dict.fromkeys(_type(option) for option in options))
    if "enum" in schema or "const" in schema:
        return " | ".join(json.dumps(value) for value in schema.get("enum", [schema.get("const")]))
    if schema.get("type") == "array":
        return f"[{_type(schema.get('items', {}))}]"
    return str(schema.get("type", "any"))


def _example(description: Schema, schema: Schema) -> Any:
    """A request as it may look."""
    whole = _named(description, schema)
    return {
        name: field["examples"][0]
        for name, field in whole.get("properties", {}).items()
        if field.get("examples")
    }
