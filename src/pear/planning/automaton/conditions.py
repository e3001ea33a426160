"""What must be true of a person for a tree to have come here? Simplified, and in words.

A path through a tree is a conjunction of comparisons. Those on one input are merged into
one range, categories into "is" or "is not", and what follows from another is left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pear.planning.automaton.inputs import Inputs
from pear.planning.automaton.tree import MoveTree
from pear.problem import Problem

Floats = NDArray[np.float64]
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
    tree: MoveTree, node: int, inputs: Inputs, usual: NDArray[np.float64]
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
