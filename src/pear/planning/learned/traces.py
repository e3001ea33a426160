"""What does the agent learn from? Sequences of observations, actions and the reward earned."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from pear.planning.learned.observations import Observer
from pear.problem.features import States

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Traces:
    """n traces of at most T = L + 1 decisions, the last being STOP.

    ``seen`` ``(n, T, inputs)``, ``legal`` ``(n, T, m + 1)``, ``target`` ``(n, T)`` the action
    taken, ``present`` ``(n, T)``; ``reward`` ``(n,)``; ``success`` ``(n,)``: only successful
    traces teach the policy, all teach the value.
    """

    seen: NDArray[np.float32]
    legal: NDArray[np.bool_]
    target: NDArray[np.int64]
    present: NDArray[np.bool_]
    reward: NDArray[np.float32]
    success: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.reward)

    def where(self, rows: NDArray[np.intp]) -> Traces:
        """Some of the traces."""
        return Traces(*(getattr(self, field.name)[rows] for field in fields(self)))

    def put(self, rows: NDArray[np.intp], others: Traces) -> None:
        """Overwrite some of the traces."""
        for field in fields(self):
            getattr(self, field.name)[rows] = getattr(others, field.name)


def build_traces(
    observer: Observer,
    states: States,
    weights: Floats,
    moves: NDArray[np.intp],
    success: NDArray[np.bool_],
    reward: Floats,
) -> Traces:
    """Traces of n people who take ``moves`` ``(n, L)`` (-1 after the end) and then STOP.

    A trace that fails ends in the state it fails in, where nothing is to be learned but
    its value.
    """
    problem, (n, longest) = observer.problem, moves.shape
    actions, stop = problem.actions, len(problem.actions)
    seen = np.zeros((n, longest + 1, observer.width), np.float32)
    legal = np.ones((n, longest + 1, stop + 1), bool)
    target = np.full((n, longest + 1), stop, np.int64)
    lengths = (moves >= 0).sum(axis=1)
    present = np.arange(longest + 1) <= lengths[:, None]
    here = np.array(states, float)
    for step in range(longest + 1):
        who = np.flatnonzero(present[:, step])
        if not len(who):
            break
        seen[who, step] = observer(
            here[who], problem.costs.all_costs(here[who], actions, weights[who])
        )
        ended = lengths[who] == step
        legal[who, step, :stop] = actions.allowed(here[who]) & ~ended[:, None]
        legal[who, step, stop] = ended
        moving = who[~ended]
        if len(moving):
            target[moving, step] = moves[moving, step]
            here[moving] = actions.apply(here[moving], moves[moving, step])
    return Traces(seen, legal, target, present, reward.astype(np.float32), success.copy())
