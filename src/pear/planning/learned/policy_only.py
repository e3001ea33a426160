"""Which plan does the policy take on its own? The agent RL, without any search."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pear.decision import BlackBox
from pear.optional import require
from pear.planning.learned.policy import Policy
from pear.planning.tree.found import FoundPlans
from pear.planning.tree.people import Ask
from pear.planning.tree.search_planner import Met, SearchPlanner
from pear.problem import Limits
from pear.problem.features import States

Floats = NDArray[np.float64]


class PolicyOnly(SearchPlanner):
    """Follows the policy greedily until the decision is favourable.

    It ends without a plan when the policy's choice is an action that is not allowed, or
    STOP too early, or at the maximum length. ``masked`` lets it choose among the allowed
    actions only. It takes a policy of any kind; the paper's agent is of kind ``rl``.
    """

    method = "rl"

    def __init__(
        self,
        policy: Policy,
        black_box: BlackBox,
        *,
        max_rows: int | None = None,
        masked: bool = False,
    ) -> None:
        super().__init__(policy.problem, black_box, simulations=1, max_rows=max_rows)
        self.policy = policy
        self.masked = masked

    def people_at_once(self) -> int:
        return 4096

    def meet(
        self,
        states: States,
        weights: Floats,
        limits: Limits,
        streams: tuple[np.random.Generator, ...],
        max_rows: int | None,
        ask: Ask,
    ) -> Met:
        count, actions = len(states), self.problem.actions
        longest = min(self.problem.max_length, limits.max_steps or self.problem.max_length)
        bar = self.problem.goal.bar(limits)
        here = np.array(states)
        moves = np.full((count, longest), -1, np.intp)
        scores = np.full((count, longest + 1), np.nan)
        scores[:, 0] = ask(here)
        rows = np.ones(count, np.int64)
        done = scores[:, 0] > bar
        memory = np.zeros((count, 2 * self.policy.agent.shape.hidden), np.float32)
        who = np.flatnonzero(~done)
        for step in range(longest):
            who = who[rows[who] < (max_rows or np.inf)]
            if not len(who):
                break
            allowed = actions.allowed(here[who], limits)
            chosen, memory[who] = self.choose(here[who], weights[who], allowed, memory[who])
            legal = chosen < len(actions)
            legal[legal] = allowed[legal, chosen[legal]]
            who, chosen = who[legal], chosen[legal]
            if not len(who):
                break
            here[who] = actions.apply(here[who], chosen)
            moves[who, step] = chosen
            scores[who, step + 1] = ask(here[who])
            rows[who] += 1
            good = scores[who, step + 1] > bar
            done[who[good]] = True
            who = who[~good]
        people = np.flatnonzero(done)
        costs = [
            self.problem.costs.sequence_costs(states[i], actions, moves[[i]], weights[i]).mean()
            for i in people
        ]
        found = FoundPlans(people, moves[people], scores[people], np.array(costs, float))
        return Met(found, rows, scores[:, 0])

    def choose(
        self,
        states: States,
        weights: Floats,
        allowed: NDArray[np.bool_],
        memory: NDArray[np.float32],
    ) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
        """The likeliest action ``(n,)``, the pair of function and argument, and new memory."""
        torch = require("torch")
        agent = self.policy.agent
        if self.policy.kind != "wfare":
            weights = np.broadcast_to(
                self.policy.mean_weights, (len(states), 1, len(self.policy.mean_weights))
            )
        seen = self.policy.observer(
            states, self.problem.costs.all_costs(states, self.problem.actions, weights)
        )
        legal = np.ones((len(states), allowed.shape[1] + 1), bool)
        if self.masked:
            legal[:, :-1], legal[:, -1] = allowed, False
        with torch.inference_mode():
            log_f, log_x, _, after = agent(
                torch.from_numpy(seen), torch.from_numpy(memory), torch.from_numpy(legal)
            )
            chosen = agent.joint(log_f, log_x).argmax(dim=1)
        return chosen.numpy().astype(np.intp), after.numpy()
