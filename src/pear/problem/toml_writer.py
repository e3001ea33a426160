"""How is a problem stated as TOML? Settings that are as by default are left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from pear.problem.actions import Action
from pear.problem.features import Feature
from pear.problem.grids import shorten_grid
from pear.problem.problem import Problem
from pear.problem.toml_text import toml_path, toml_table

FORMAT = 1


def problem_to_toml(problem: Problem, comments: Mapping[str, str] | None = None) -> str:
    """The whole problem as the text of a ``problem.toml``.

    ``comments`` are put above the tables they are named after (``features.age``).
    """
    comments = comments or {}
    head = {"format": FORMAT, "name": problem.name, "max_length": problem.max_length}
    parts = [toml_table("", head, comments.get("", "")).strip()]

    def table(content: Mapping[str, Any], *path: str) -> None:
        where = toml_path(*path)
        parts.append(toml_table(f"[{where}]", content, comments.get(where, "")))

    if problem.model:
        key = "url" if problem.model.startswith(("http://", "https://")) else "path"
        table({key: problem.model}, "model")
    if problem.prior:
        table({"path": problem.prior}, "prior")
    goal = asdict(problem.goal)
    if not goal["favourable"]:
        del goal["favourable"]
    table(goal, "goal")
    for feature in problem.space.features:
        table(_feature(feature), "features", feature.name)
    for action in problem.actions.actions:
        table(_action(action), "actions", action.name)
    costs = problem.costs
    table(
        {
            "floor": "none" if costs.floor is None else costs.floor,
            "offset": costs.offset,
            "zero_change": "none" if costs.zero_change is None else costs.zero_change,
            "edges": [list(edge) for edge in costs.edges],
        },
        "costs",
    )
    table({"default": list(problem.default_range)}, "weights")
    if problem.weight_range:
        ranges = {name: list(pair) for name, pair in problem.weight_range.items()}
        table(ranges, "weights", "ranges")
    for archetype in problem.archetypes:
        parts.append(
            toml_table("[[archetypes]]", {"name": archetype.name, "share": archetype.share})
        )
        for key in ("mean", "spread"):
            numbers = zip(problem.weight_names, getattr(archetype, key), strict=True)
            table(dict(numbers), "archetypes", key)
    return "\n\n".join(parts) + "\n"


def _feature(feature: Feature) -> dict[str, Any]:
    content = {"kind": feature.kind, **_set_fields(feature)}
    del content["name"]
    if feature.ordered and feature.levels == _even_levels(feature):
        del content["levels"]
    return content


def _even_levels(feature: Feature) -> tuple[float, ...]:
    return Feature(feature.name, "categorical", categories=feature.categories, ordered=True).levels


def _action(action: Action) -> dict[str, Any]:
    content = {"feature": action.feature, **_set_fields(action)}
    del content["name"]
    content["arguments"] = shorten_grid(action.arguments)
    if action.requires:
        content["requires"] = [_set_fields(requirement) for requirement in action.requires]
    return content


def _set_fields(entry: Any) -> dict[str, Any]:
    """The fields of a dataclass that differ from their defaults."""
    return {
        field.name: getattr(entry, field.name)
        for field in fields(entry)
        if getattr(entry, field.name) != field.default
    }
