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
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pear.errors import FingerprintMismatch, InvalidData, InvalidSetting
from pear.planning.automaton.conditions import Condition, conditions_of
from pear.planning.automaton.inputs import Inputs
from pear.planning.automaton.tree import STOP, MoveTree
from pear.problem import Problem
from pear.writing import write_text

Floats = NDArray[np.float64]
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
            raise InvalidData(f"this is no automaton ('format' must be {FORMAT!r})")
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
