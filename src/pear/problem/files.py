"""How is a problem written to ``problem.toml`` and read back?

``load_problem(write_problem(p)) == p``, with the same fingerprint. Every refusal names the
key by its path, the value and the remedy.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, fields
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, TypeVar

from pear.errors import InvalidInput, InvalidProblem
from pear.problem import schema
from pear.problem.actions import FACTS, Action, ActionSpace, Requirement, check_action
from pear.problem.costs import CostGraph
from pear.problem.features import Feature, FeatureSpace
from pear.problem.model_inputs import Interface, ModelInput
from pear.problem.problem import Archetype, Asked, Goal, Problem
from pear.problem.schema import toml_path, toml_table
from pear.problem.values import check_type, refusal_at, shown
from pear.problem.wording import Words
from pear.writing import write_text

T = TypeVar("T")

FORMAT = 1


def load_problem(path: str | os.PathLike[str]) -> Problem:
    """Read a problem from a file.

    Parameters
    ----------
    path
        A ``problem.toml``.

    Returns
    -------
    Problem
        The problem, checked as a whole.

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
    if not isinstance(path, (str, os.PathLike)):
        raise InvalidProblem(f"'path' must be a path (got {path!r:.100})")
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
    """Write a problem to a file, completely or not at all.

    Parameters
    ----------
    problem
        What to write.
    path
        Where to; an existing file is replaced.

    Raises
    ------
    InvalidSetting
        Where the file cannot be written.

    Examples
    --------
    See :func:`load_problem`, which reads it back.
    """
    check_type("problem", problem, Problem)
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
    """The problem that a TOML text describes.

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
    except (ValueError, RecursionError) as error:  # endless numbers and nested lists included
        raise InvalidProblem(f"the problem is not TOML: {error}; correct it there") from None
    data = schema.checked_table(data, schema.PROBLEM_KEYS)
    if data.get("format", FORMAT) != FORMAT:
        raise InvalidProblem(
            f"format must be {FORMAT} (got {data['format']!r}); this version reads no other"
        )
    features = [
        _made(partial(Feature, name), schema.FEATURE_KEYS, content, "features", name)
        for name, content in data["features"].items()
    ]
    with _located("features"):
        space = FeatureSpace(tuple(features))
    declared = tuple(_read_action(space, *entry) for entry in data["actions"].items())
    with _located("actions"):
        actions = ActionSpace(space, declared)
    costs = _read_costs(space, data.get("costs", {}))
    weights = schema.checked_table(data.get("weights", {}), schema.WEIGHT_KEYS, "weights")
    stated: dict[str, Any] = {key: data[key] for key in ("name", "max_length") if key in data}
    if "default" in weights:
        stated["default_range"] = weights["default"]
    if "prior" in data:
        prior = schema.checked_table(data["prior"], schema.PRIOR_KEYS, "prior")
        stated["prior"] = _place(prior["path"], "prior", "path")
    if "asked" in data:
        stated["asked"] = _made(Asked, schema.ASKED_KEYS, data["asked"], "asked")
    stated["words"] = {
        language: _made(Words, schema.WORD_KEYS, content, "words", language)
        for language, content in data.get("words", {}).items()
    }
    stated["goal"] = _made(Goal, schema.GOAL_KEYS, data.get("goal", {}), "goal")
    stated["archetypes"] = tuple(_read_archetypes(costs, data.get("archetypes", [])))
    stated["model"], stated["interface"] = _read_model(data)
    with _located():
        return Problem(space, actions, costs, weight_range=weights.get("ranges", {}), **stated)


def _made(make: Callable[..., T], keys: Mapping[str, schema.Key], content: Any, *path: str) -> T:
    """What a table describes; errors of its class name the path of the key."""
    content = schema.checked_table(content, keys, *path)
    with _located(*path):
        return make(**content)


def _read_action(space: FeatureSpace, name: str, content: Any) -> Action:
    where = ("actions", name)
    content = schema.checked_table(content, schema.ACTION_KEYS, *where)
    requires = tuple(
        _made(Requirement, schema.REQUIREMENT_KEYS, entry, *where, "requires", str(number))
        for number, entry in enumerate(content.get("requires", ()))
    )
    try:
        arguments = schema.expand_grid(content["arguments"])
    except InvalidProblem as error:
        raise InvalidProblem(f"{toml_path(*where, 'arguments')} {error}") from None
    if isinstance(content["arguments"], dict) and content["mode"] == "add":
        arguments = tuple(amount for amount in arguments if amount != 0)
    with _located(*where):
        action = Action(name, **{**content, "arguments": arguments, "requires": requires})
        check_action(space, action)
        _check_amounts(action)
    return action


def _check_amounts(action: Action) -> None:
    """Refuse amounts that all go against the action's direction.

    Only for files: in Python, amounts against the direction may be given and are never legal.
    """
    if action.mode != "add" or action.direction == "any":
        return
    sign = 1 if action.direction == "increase" else -1
    if all(sign * float(amount) < 0 for amount in action.arguments):
        raise refusal_at(
            "arguments",
            f"action '{action.name}': 'direction' is {action.direction!r}, but every amount (the "
            f"first is {action.arguments[0]!r}) goes the other way; correct one of the two",
        )


def _read_costs(space: FeatureSpace, content: Any) -> CostGraph:
    content = schema.checked_table(content, schema.COST_KEYS, "costs")
    for key in ("floor", "zero_change"):
        if content.get(key) == "none":
            content[key] = None
    with _located("costs"):
        return CostGraph(space, **content)


def _read_archetypes(costs: CostGraph, entries: list[Any]) -> Iterator[Archetype]:
    for number, entry in enumerate(entries):
        path = ("archetypes", str(number))
        content = schema.checked_table(entry, schema.ARCHETYPE_KEYS, *path)
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
    inputs = tuple(
        _made(partial(ModelInput, name), schema.INPUT_KEYS, entry, "model", "inputs", name)
        for name, entry in content.get("inputs", {}).items()
    )
    with _located("model"):
        interface = Interface(inputs, content.get("output", ""), content.get("classes", ()))
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
    place = _place(content[key], "model", key)
    if (key == "url") != place.startswith(("http://", "https://")):
        raise InvalidProblem(
            f"model.{key} must be {'an http(s) address' if key == 'url' else 'a file'} "
            f"(got {place!r}); use '{'path' if key == 'url' else 'url'}' for the other"
        )
    return place, interface


def _place(place: Any, what: str, key: str) -> str:
    """A file or an address that a table names."""
    if not isinstance(place, str):
        raise InvalidProblem(f"{what}.{key} must be a text (got {shown(place)})")
    if not place:
        raise InvalidProblem(f"{what}.{key} is empty (got ''); name the {what} or remove it")
    return place


@contextmanager
def _located(*path: str) -> Iterator[None]:
    """Put the path of the key in front of an error raised inside."""
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
    if goal["just_enough"] == Goal().just_enough:
        del goal["just_enough"]
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
