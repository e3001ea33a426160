"""How is a problem written to ``problem.toml`` and read back?

``load_problem(write_problem(p)) == p``, with the same fingerprint. Every refusal names the
key by its path, the value and the remedy.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, fields
from functools import lru_cache
from pathlib import Path
from typing import Any

from pear.errors import InvalidInput, InvalidProblem
from pear.problem import schema
from pear.problem.actions import FACTS, Action, ActionSpace, Requirement, check_amounts
from pear.problem.checks import is_finite, shown
from pear.problem.costs import CostGraph
from pear.problem.features import Feature, FeatureSpace
from pear.problem.inputs import Interface, ModelInput
from pear.problem.problem import Archetype, Asked, Goal, Problem
from pear.problem.toml_text import toml_path, toml_table
from pear.problem.words import Words
from pear.writing import write_text

FORMAT = 1


def load_problem(path: str | os.PathLike[str]) -> Problem:
    """The problem that a file states.

    Parameters
    ----------
    path
        A ``problem.toml``.

    Returns
    -------
    Problem
        Checked as a whole.

    Raises
    ------
    InvalidProblem
        Where the file cannot be read, or something in it is wrong, naming the file and the key.

    Examples
    --------
    >>> import tempfile
    >>> from pear.datasets import loan_book_problem
    >>> path = Path(tempfile.mkdtemp()) / "problem.toml"
    >>> write_problem(loan_book_problem(), path)
    >>> load_problem(path) == loan_book_problem()
    True
    """
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InvalidProblem(
            f"there is no file '{file}'; 'pear init' writes a first problem from a table"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidProblem(f"'{file}' cannot be read as text: {error}") from None
    try:
        return problem_from_toml(text)
    except InvalidProblem as error:
        named = InvalidProblem(f"{file.name}: {error}")
        named.key = error.key
        raise named from None


@lru_cache
def built_in_problem(name: str) -> Problem:
    """A problem that ships with the package: adult, give_me_some_credit or loan_book."""
    return load_problem(Path(__file__).with_name(f"{name}.toml"))


def write_problem(problem: Problem, path: str | os.PathLike[str]) -> None:
    """Write a problem; the file is whole or not there at all.

    Parameters
    ----------
    problem
        What to write.
    path
        Where; a file that is there is replaced.

    Raises
    ------
    InvalidSetting
        Where the file cannot be written.

    Examples
    --------
    See :func:`load_problem`, which reads it back.
    """
    write_text(problem_to_toml(problem), path)


def model_location(problem: Problem, path: str | os.PathLike[str]) -> str | None:
    """Where the model of a problem read from ``path`` is: a path or an address, if stated."""
    if problem.model.startswith(("http://", "https://")):
        return problem.model
    return str(Path(path).parent / problem.model) if problem.model else None


def prior_location(problem: Problem, path: str | os.PathLike[str]) -> str | None:
    """Where the prior of a problem read from ``path`` is, if stated."""
    return str(Path(path).parent / problem.prior) if problem.prior else None


def problem_from_toml(text: str) -> Problem:
    """The problem a text states.

    >>> problem = problem_from_toml('''
    ... [features.income]
    ... kind = "numeric"
    ... [actions.earn_more]
    ... feature = "income"
    ... mode = "add"
    ... arguments = { from = 100, to = 500, step = 100 }
    ... ''')
    >>> problem.actions.actions[0].arguments
    (100, 200, 300, 400, 500)
    """
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # of a number or a list without end, too
        raise InvalidProblem(f"the problem is not TOML: {error}; correct it there") from None
    data = schema.checked_table(data, schema.PROBLEM_KEYS)
    features = []
    for name, content in data["features"].items():
        content = schema.checked_table(content, schema.FEATURE_KEYS, "features", name)
        with _located("features", name):
            features.append(Feature(name, **content))
    with _located("features"):
        space = FeatureSpace(tuple(features))
    declared = tuple(_read_action(space, *entry) for entry in data["actions"].items())
    with _located("actions"):
        actions = ActionSpace(space, declared)
    costs = _read_costs(space, data.get("costs", {}))
    goal_keys = schema.checked_table(data.get("goal", {}), schema.GOAL_KEYS, "goal")
    with _located("goal"):
        goal = Goal(**goal_keys)
    weights = schema.checked_table(data.get("weights", {}), schema.WEIGHT_KEYS, "weights")
    settings: dict[str, Any] = {key: data[key] for key in ("name", "max_length") if key in data}
    if "default" in weights:
        settings["default_range"] = weights["default"]
    prior = (
        schema.checked_table(data["prior"], schema.PRIOR_KEYS, "prior")["path"]
        if ("prior" in data)
        else ""
    )
    archetypes = tuple(_read_archetypes(costs, data.get("archetypes", [])))
    said = {
        language: Words(**schema.checked_table(content, schema.WORD_KEYS, "words", language))
        for language, content in data.get("words", {}).items()
    }
    asked = None
    if "asked" in data:
        with _located("asked"):
            asked = Asked(**schema.checked_table(data["asked"], schema.ASKED_KEYS, "asked"))
    place, interface = _read_model(data)
    with _located():
        return Problem(
            space,
            actions,
            costs,
            goal,
            weight_range=weights.get("ranges", {}),
            archetypes=archetypes,
            model=place,
            prior=prior,
            asked=asked,
            words=said,
            interface=interface,
            **settings,
        )


def _read_action(space: FeatureSpace, name: str, content: Any) -> Action:
    content = dict(schema.checked_table(content, schema.ACTION_KEYS, "actions", name))
    requires = []
    for number, entry in enumerate(content.get("requires", ())):
        path = ("actions", name, "requires", str(number))
        requires.append(Requirement(**schema.checked_table(entry, schema.REQUIREMENT_KEYS, *path)))
    try:
        arguments = schema.expand_grid(content["arguments"])
    except InvalidProblem as error:
        raise InvalidProblem(f"{toml_path('actions', name, 'arguments')} {error}") from None
    if isinstance(content["arguments"], dict) and content["mode"] == "add":
        arguments = tuple(amount for amount in arguments if amount != 0)
    action = Action(name, **{**content, "arguments": arguments, "requires": tuple(requires)})
    with _located("actions", name):
        ActionSpace(space, (action,))
        check_amounts(action)
    return action


def _read_costs(space: FeatureSpace, content: Any) -> CostGraph:
    content = dict(schema.checked_table(content, schema.COST_KEYS, "costs"))
    for key in ("floor", "zero_change"):
        if content.get(key) == "none":
            content[key] = None
    with _located("costs"):
        return CostGraph(space, **content)


def _read_archetypes(costs: CostGraph, entries: list[Any]) -> Iterator[Archetype]:
    for number, entry in enumerate(entries):
        path = ("archetypes", str(number))
        content = dict(schema.checked_table(entry, schema.ARCHETYPE_KEYS, *path))
        for key in ("mean", "spread"):
            content[key] = _named_numbers(costs, content[key], *path, key)
        with _located(*path):
            archetype = Archetype(**content)
        yield archetype


def _named_numbers(costs: CostGraph, content: Any, *path: str) -> tuple[float, ...]:
    """Numbers by weight name, in the order of the weights; one number stands for all."""
    if not isinstance(content, dict):
        return (content,) * costs.n_weights
    for name, number in content.items():
        if name not in costs.weight_names:
            raise InvalidProblem(
                f"{toml_path(*path, name)}: there is no such weight (got {number!r}); "
                f"the weights are {', '.join(costs.weight_names)}"
            )
        if not is_finite(number):
            raise InvalidProblem(f"{toml_path(*path, name)} must be a number (got {shown(number)})")
    for name in costs.weight_names:
        if name not in content:
            raise InvalidProblem(
                f"{toml_path(*path, name)} is missing (got {len(content)} of "
                f"{costs.n_weights} weights); give every weight"
            )
    return tuple(content[name] for name in costs.weight_names)


def _read_model(data: dict[str, Any]) -> tuple[str, Interface]:
    """Where the model is, and how it is asked."""
    content = schema.checked_table(data.get("model", {}), schema.MODEL_KEYS, "model")
    inputs = []
    for name, entry in content.get("inputs", {}).items():
        entry = schema.checked_table(entry, schema.INPUT_KEYS, "model", "inputs", name)
        with _located("model", "inputs", name):
            inputs.append(ModelInput(name, **entry))
    with _located("model"):
        interface = Interface(
            tuple(inputs), content.get("output", ""), tuple(content.get("classes", ()))
        )
    places = [key for key in ("path", "url") if key in content]
    if len(places) == 2:
        raise InvalidProblem("model must have either 'path' or 'url' (got both); keep one")
    if not places:
        if "model" in data and not content:
            raise InvalidProblem(
                "model must have either 'path' or 'url' (got neither); name the model or remove it"
            )
        return "", interface
    [key] = places
    place = content[key]
    if not place:
        raise InvalidProblem(f"model.{key} is empty (got {place!r}); name the model or remove it")
    if (key == "url") != place.startswith(("http://", "https://")):
        raise InvalidProblem(
            f"model.{key} must be {'an http(s) address' if key == 'url' else 'a file'} "
            f"(got {place!r}); use '{'path' if key == 'url' else 'url'}' for the other"
        )
    return str(place), interface


@contextmanager
def _located(*path: str) -> Iterator[None]:
    """Put the path of the key before a refusal from inside."""
    try:
        yield
    except InvalidInput as error:
        key = getattr(error, "key", "")
        where = ".".join(part for part in (toml_path(*path), key) if part)
        located = InvalidProblem(f"{where}: {error}" if where else str(error))
        located.key = where
        raise located from None


def problem_to_toml(problem: Problem, comments: Mapping[str, str] | None = None) -> str:
    """The whole problem as the text of a ``problem.toml``.

    ``comments`` are put above the tables they are named after (``features.age``).
    """
    comments = comments or {}
    head: dict[str, Any] = {
        "format": FORMAT,
        "name": problem.name,
        "max_length": problem.max_length,
    }
    parts = [toml_table("", head, comments.get("", "")).strip()]

    def table(content: Mapping[str, Any], *path: str) -> None:
        where = toml_path(*path)
        parts.append(toml_table(f"[{where}]", content, comments.get(where, "")))

    interface = problem.interface
    if problem.model or interface != Interface():
        key = "url" if problem.model.startswith(("http://", "https://")) else "path"
        content = {key: problem.model} if problem.model else {}
        content |= {
            k: getattr(interface, k) for k in ("output", "classes") if getattr(interface, k)
        }
        table(content, "model")
        for entry in interface.inputs:
            stated = _set_fields(entry)
            table(
                {k: v for k, v in stated.items() if k != "column"}, "model", "inputs", entry.column
            )
    if problem.prior:
        table({"path": problem.prior}, "prior")
    goal = asdict(problem.goal)
    if not goal["favourable"]:
        del goal["favourable"]
    if not goal["target"]:
        del goal["target"]
    table(goal, "goal")
    for feature in problem.space.features:
        table(_written_feature(feature), "features", feature.name)
    for action in problem.actions.actions:
        table(_written_action(action), "actions", action.name)
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
        head = {"name": archetype.name, "share": archetype.share}
        same = len(set(archetype.spread)) == 1
        if same:
            head["spread"] = archetype.spread[0]
        parts.append(toml_table("[[archetypes]]", head))
        for key in ("mean",) if same else ("mean", "spread"):
            numbers = zip(problem.weight_names, getattr(archetype, key), strict=True)
            table(dict(numbers), "archetypes", key)
    if problem.asked:
        table(_set_fields(problem.asked), "asked")
    for language, said in problem.words.items():
        for key in ("labels", "units", "phrases"):
            if content := dict(getattr(said, key)):
                table(content, "words", language, key)
        for name, categories in said.categories.items():
            table(dict(categories), "words", language, "categories", name)
    return "\n\n".join(parts) + "\n"


def _written_feature(feature: Feature) -> dict[str, Any]:
    content = {"kind": feature.kind, **_set_fields(feature)}
    del content["name"]
    if feature.ordered and feature.levels == _even_levels(feature):
        del content["levels"]
    return content


def _even_levels(feature: Feature) -> tuple[float, ...]:
    return Feature(feature.name, "categorical", categories=feature.categories, ordered=True).levels


def _written_action(action: Action) -> dict[str, Any]:
    content = {"feature": action.feature, **_set_fields(action)}
    del content["name"]
    content["arguments"] = schema.shorten_grid(action.arguments)
    for key in FACTS:
        if len(facts := getattr(action, key)) == 1:
            content[key] = facts[0]
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
