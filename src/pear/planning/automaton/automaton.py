"""The automaton: which move may follow which, and a tree at each node that chooses.

Nodes are moves; the walk starts at START. Stored as JSON, which can hold no code.

Reference: paper, section "(Explainable) eFficient counterfActual REcourse"; De Toni,
Lepri and Passerini (2023), Synthesizing explainable counterfactual policies.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np

from pear.arrays import Floats
from pear.errors import FingerprintMismatch, InvalidData, InvalidSetting
from pear.planning.automaton.tree import STOP, MoveTree
from pear.problem import Problem
from pear.problem.features import States
from pear.writing import write_text

START = -2
"""The node a walk begins at; every other node is a move."""

FORMAT = "pear automaton 1"


@dataclass(frozen=True)
class Automaton:
    """A trained automaton.

    ``trees`` maps a node to its tree. ``aware`` says whether the trees see what changes cost
    the person (W-EFARE) or not (EFARE). ``usual`` ``(functions,)`` are the middle costs of
    the functions among the people trained on; ``people`` how many there were and ``teacher``
    whose plans they were.
    """

    problem: Problem
    aware: bool
    trees: Mapping[int, MoveTree]
    usual: Floats
    people: int
    teacher: str

    @cached_property
    def inputs(self) -> Inputs:
        return Inputs(self.problem, self.aware)

    @property
    def nodes(self) -> tuple[int, ...]:
        """START and the moves that have a tree."""
        return tuple(sorted(self.trees))

    @cached_property
    def edges(self) -> dict[tuple[int, int], int]:
        """How often each (node, next move or STOP) was seen in the plans trained on."""
        return {
            (node, int(move)): int(count)
            for node, tree in self.trees.items()
            for move, count in zip(tree.moves, tree.counts[0], strict=True)
        }

    def tree_at(self, node: int) -> MoveTree:
        """The tree of a node; a move never seen in training goes on as from the start."""
        return self.trees.get(node, self.trees[START])

    def conditions(self, tree: MoveTree, tree_node: int) -> tuple[Condition, ...]:
        """What is true of everybody who comes to a node of a tree."""
        return conditions_of(tree, tree_node, self.inputs, self.usual)

    def name(self, node: int) -> str:
        """A node in words: "START", "STOP", or the action with its argument."""
        if not START <= node < len(self.problem.actions):
            raise InvalidSetting(
                f"there is no move {node}; the moves are 0 to {len(self.problem.actions) - 1}"
            )
        if node in (START, STOP):
            return "START" if node == START else "STOP"
        action = self.problem.actions.actions[self.problem.actions.action_of[node]]
        argument = self.problem.actions.argument(node)
        shown = f"{argument:+g}" if action.mode == "add" else str(argument)
        return f"{action.name} {shown}"

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "format": FORMAT,
            "problem_fingerprint": self.problem.fingerprint,
            "aware": self.aware,
            "people": self.people,
            "teacher": self.teacher,
            "usual": self.usual.tolist(),
            "trees": {str(node): tree.to_dict() for node, tree in self.trees.items()},
        }

    @classmethod
    def from_dict(cls, data: Any, problem: Problem) -> Automaton:
        """The automaton stored by :meth:`to_dict`, for the problem it was trained on."""
        if not isinstance(data, Mapping) or data.get("format") != FORMAT:
            raise InvalidData(f"this is not an automaton ('format' must be {FORMAT!r})")
        if data.get("problem_fingerprint") != problem.fingerprint:
            raise FingerprintMismatch(
                f"the automaton was trained on another problem ({data.get('problem_fingerprint')}, "
                f"this one is {problem.fingerprint}); train it again"
            )
        try:
            aware, people = bool(data["aware"]), int(data["people"])
            usual = np.asarray(data["usual"], float)
            nodes = {int(node): tree for node, tree in dict(data["trees"]).items()}
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise InvalidData(f"the automaton cannot be read: {error!r}") from None
        width = len(Inputs(problem, aware))
        trees = {
            node: MoveTree.from_dict(tree, width, len(problem.actions))
            for node, tree in nodes.items()
        }
        known = all(node == START or 0 <= node < len(problem.actions) for node in trees)
        known &= usual.shape == (len(problem.actions.actions),) and bool(np.isfinite(usual).all())
        if START not in trees or not known:
            raise InvalidData(
                "the automaton lacks its start or names unknown moves; train it again"
            )
        return cls(problem, aware, trees, usual, people, str(data.get("teacher", "")))

    def save(self, path: str | Path) -> None:
        """Write the automaton as JSON."""
        write_text(json.dumps(self.to_dict()), path)

    @classmethod
    def load(cls, path: str | Path, problem: Problem) -> Automaton:
        """Read an automaton written by :meth:`save`."""
        try:
            data = json.loads(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise InvalidData(f"the automaton '{path}' cannot be opened: {error}") from None
        except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
            raise InvalidData(f"'{path}' is no JSON: {error}") from None
        return cls.from_dict(data, problem)


Kind = Literal["number", "category", "cost", "rank"]


@dataclass(frozen=True)
class Column:
    """One input: ``place`` is a feature's column, or an action's number for cost and rank.

    ``code`` is the category a column of kind ``category`` stands for.
    """

    kind: Kind
    place: int
    code: int = -1


@dataclass(frozen=True)
class Inputs:
    """Columns of the trees' input for a problem; ``aware`` adds what changes cost this person.

    Protected features are left out: no reason rests on them.
    """

    problem: Problem
    aware: bool

    @cached_property
    def places(self) -> tuple[int, ...]:
        """The features looked at, by column."""
        features = enumerate(self.problem.space.features)
        return tuple(place for place, feature in features if not feature.protected)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        columns = []
        for place in self.places:
            feature = self.problem.space.features[place]
            if feature.is_categorical:
                columns += [
                    Column("category", place, code) for code in range(len(feature.categories))
                ]
            else:
                columns.append(Column("number", place))
        if self.aware:
            functions = range(len(self.problem.actions.actions))
            columns += [Column("cost", number) for number in functions]
            columns += [Column("rank", number) for number in functions]
        return tuple(columns)

    def __len__(self) -> int:
        return len(self.columns)

    def matrix(self, states: States, weights: Floats) -> Floats:
        """Inputs ``(n, len(self))`` of states ``(n, d)`` with weight samples ``(n, s, p)``."""
        parts = []
        for place in self.places:
            feature, codes = self.problem.space.features[place], states[:, [place]]
            if feature.is_categorical:
                parts.append((codes == np.arange(len(feature.categories))).astype(float))
            else:
                parts.append(codes)
        if self.aware:
            costs = self.function_costs(states, weights)
            parts += [costs, ranks(costs)]
        return np.concatenate(parts, axis=1)

    def function_costs(self, states: States, weights: Floats) -> Floats:
        """Mean cost of each function over its arguments, shape ``(n, functions)``."""
        counts = np.bincount(self.problem.actions.action_of)
        starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
        costs = self.problem.costs.all_costs(states, self.problem.actions, weights)
        return np.asarray(np.add.reduceat(costs, starts, axis=1) / counts)


def ranks(costs: Floats) -> Floats:
    """How many of a row are strictly cheaper, shape as given.

    >>> ranks(np.array([[5.0, 1.0, 1.0]]))
    array([[2., 0., 0.]])
    """
    return np.asarray((costs[:, None, :] < costs[:, :, None]).sum(axis=2).astype(float))


ORDINALS = {2: "second", 3: "third", 4: "fourth", 5: "fifth"}
NUMBERS = {2: "two", 3: "three", 4: "four", 5: "five"}


@dataclass(frozen=True)
class Condition:
    """One thing that is true of a person.

    ``kind`` is ``number`` or ``category`` for a feature, ``cost`` or ``rank`` for an action;
    ``name`` names it. The value is above ``above`` and at most ``at_most`` where they are
    given; a category is one of ``one_of``, or none of ``none_of``. ``usual`` is the middle
    of such costs among the people the automaton was trained on.
    """

    kind: str
    name: str
    above: float | None = None
    at_most: float | None = None
    one_of: tuple[str, ...] = ()
    none_of: tuple[str, ...] = ()
    usual: float | None = None

    def holds(self, inputs: Inputs, state: Floats, weights: Floats) -> bool:
        """Whether it is true of a state ``(d,)`` with weights ``(p,)`` or samples ``(s, p)``."""
        problem = inputs.problem
        if self.kind == "category":
            value = problem.space[self.name].value(state[problem.space.index(self.name)])
            return (not self.one_of or value in self.one_of) and value not in self.none_of
        if self.kind == "number":
            number = float(state[problem.space.index(self.name)])
        else:
            costs = inputs.function_costs(state[None], np.atleast_2d(weights)[None])[0]
            names = [action.name for action in problem.actions.actions]
            mine = costs[names.index(self.name)]
            number = float(mine if self.kind == "cost" else (costs < mine).sum())
        low = self.above is None or number > self.above
        return low and (self.at_most is None or number <= self.at_most)

    def words(self, problem: Problem) -> str:
        """The condition as part of a sentence that starts with "because"."""
        if self.kind == "rank":
            return f"{change_words(problem, self.name)} is {self._rank_words()}"
        if self.kind == "cost":
            return f"{change_words(problem, self.name)} {self._cost_words()}"
        feature = problem.space[self.name]
        subject = f"your {feature.words}"
        if self.kind == "category":
            if self.one_of:
                return f"{subject} is {_either(self.one_of)}"
            return f"{subject} is not {_either(self.none_of)}"
        if feature.kind == "boolean":
            return f"{subject} is {'yes' if self.above is not None else 'no'}"
        low = None if self.above is None else show_number(self.above, feature.unit)
        high = None if self.at_most is None else show_number(self.at_most, feature.unit)
        return f"{subject} is {_range(low, high)}"

    def to_dict(self, problem: Problem | None = None) -> dict[str, Any]:
        """Plain data for JSON; with the problem, the words too."""
        data = {
            "kind": self.kind,
            "name": self.name,
            "above": self.above,
            "at_most": self.at_most,
            "one_of": list(self.one_of),
            "none_of": list(self.none_of),
        }
        return data if problem is None else {**data, "words": self.words(problem)}

    def _cost_words(self) -> str:
        low = None if self.above is None else f"{self.above:g}"
        high = None if self.at_most is None else f"{self.at_most:g}"
        usual = self.usual
        if low is None and self.at_most is not None:
            cheap = usual is None or self.at_most <= usual
            return f"is {'cheap' if cheap else 'not too costly'} for you (at most {high})"
        if high is None and self.above is not None:
            costly = usual is None or self.above >= usual
            return f"is {'costly' if costly else 'not cheap'} for you (above {low})"
        return f"costs you more than {low} and at most {high}"

    def _rank_words(self) -> str:
        least = 0 if self.above is None else int(np.floor(self.above)) + 1
        most = None if self.at_most is None else int(np.floor(self.at_most))
        if most is None:
            return f"not {_cheapest(least)}"
        if least == 0:
            return _cheapest(most + 1)
        if least == most:
            return f"your {ORDINALS.get(least + 1, f'{least + 1}th')} cheapest change"
        return f"{_cheapest(most + 1)}, but not {_cheapest(least)}"


def conditions_of(
    tree: MoveTree, node: int, inputs: Inputs, usual: Floats
) -> tuple[Condition, ...]:
    """What is true of everybody who comes to a node of a tree, simplified.

    ``usual`` ``(functions,)`` are the middle costs of the functions among the people trained on.
    """
    problem = inputs.problem
    lows: dict[tuple[str, str], float] = {}
    highs: dict[tuple[str, str], float] = {}
    are: dict[str, str] = {}
    are_not: dict[str, list[str]] = {}
    order: list[tuple[str, str]] = []
    way = tree.path(node)
    for here, below in pairwise(way):
        column = inputs.columns[tree.column[here]]
        went_right = below == tree.right[here]
        if column.kind in ("cost", "rank"):
            name = problem.actions.actions[column.place].name
        else:
            name = problem.space.names[column.place]
        key = (column.kind, name)
        if key not in order:
            order.append(key)
        if column.kind == "category":
            category = problem.space[name].categories[column.code]
            if went_right:
                are[name] = category
            else:
                are_not.setdefault(name, []).append(category)
        elif went_right:
            lows[key] = max(lows.get(key, -np.inf), float(tree.threshold[here]))
        else:
            highs[key] = min(highs.get(key, np.inf), float(tree.threshold[here]))
    found = []
    for kind, name in order:
        if kind == "category":
            found.append(_category(problem, name, are.get(name), are_not.get(name, [])))
            continue
        low, high = lows.get((kind, name)), highs.get((kind, name))
        middle = None
        if kind == "cost":
            middle = float(usual[[a.name for a in problem.actions.actions].index(name)])
        found.append(Condition(kind, name, above=low, at_most=high, usual=middle))
    return tuple(found)


def because(problem: Problem, conditions: tuple[Condition, ...]) -> str:
    """The conditions as one phrase: "because your debt ratio is above 0.4 and …"."""
    texts = [condition.words(problem) for condition in conditions]
    if len(texts) == 1:
        return f"because {texts[0]}"
    return f"because {', '.join(texts[:-1])} and {texts[-1]}"


def change_words(problem: Problem, action: str) -> str:
    """What people call an action: "changing your income"; its name where two change the same."""
    actions = problem.actions.actions
    declared = next(a for a in actions if a.name == action)
    if sum(a.feature == declared.feature for a in actions) > 1:
        return f"“{action}”"
    return f"changing your {problem.space[declared.feature].words}"


def show_number(number: float, unit: str) -> str:
    """A threshold in full: it decides, so it is not rounded.

    >>> show_number(2100.0, "€"), show_number(0.4, "")
    ('2,100 €', '0.4')
    """
    text = f"{number:,.12f}".rstrip("0").rstrip(".")
    return f"{'0' if text == '-0' else text} {unit}".strip()


def _category(problem: Problem, name: str, is_: str | None, is_not: list[str]) -> Condition:
    if is_ is not None:
        return Condition("category", name, one_of=(is_,))
    left = [c for c in problem.space[name].categories if c not in is_not]
    if 0 < len(left) <= min(2, len(is_not)):
        return Condition("category", name, one_of=tuple(left))
    return Condition("category", name, none_of=tuple(is_not))


def _range(low: str | None, high: str | None) -> str:
    if low is None:
        return f"at most {high}"
    return f"above {low}" if high is None else f"above {low} and at most {high}"


def _cheapest(count: int) -> str:
    if count == 1:
        return "your cheapest change"
    return f"among your {NUMBERS.get(count, str(count))} cheapest changes"


def _either(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
