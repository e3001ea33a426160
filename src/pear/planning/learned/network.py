"""What does the agent compute, and how wrong is it about a batch of traces?

Encoder, LSTM controller, function, argument and value heads. Importing this module needs the
extra ``learned``.

References: paper, appendix "Recourse Policy"; the loss, eqn. rl-policy-loss: squared error of the
value and the cross-entropies of function and argument. (The paper prints V - r²; the squared
error (V - r)² is meant.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pear.arrays import Flags, Indices
from pear.optional import require
from pear.planning.learned.episodes import Traces
from pear.problem import Problem

torch = require("torch")
nn = torch.nn

NEVER = -1e9
"""Logit of an action that is not allowed."""


@dataclass(frozen=True)
class Shape:
    """How large the agent is."""

    inputs: int
    functions: int
    moves: int
    hidden: int = 64


class Agent(nn.Module):  # type: ignore[misc, name-defined]
    """The agent over m moves and F functions; the last function is STOP.

    ``function_of`` ``(m,)`` is the function of each move.
    """

    def __init__(self, shape: Shape, function_of: Indices) -> None:
        super().__init__()
        size = shape.hidden
        self.shape = shape
        self.encoder = _mlp(shape.inputs, size, size)
        self.controller = nn.LSTMCell(size, size)
        self.function_head = _mlp(size, size, shape.functions + 1)
        self.argument_head = _mlp(size, size, shape.moves)
        self.value_head = _mlp(size, size, 1)
        places, present = argument_table(function_of, shape.functions)
        self.register_buffer("function_of", torch.as_tensor(function_of), persistent=False)
        self.register_buffer("places", torch.as_tensor(places), persistent=False)
        self.register_buffer("present", torch.as_tensor(present), persistent=False)

    def forward(self, seen: Any, memory: Any, legal: Any) -> tuple[Any, Any, Any, Any]:
        """Log π_f ``(n, F + 1)``, log π_x ``(n, m)`` given each function, values, new memory.

        ``seen`` ``(n, inputs)``, ``memory`` ``(n, 2 hidden)``, ``legal`` ``(n, m + 1)``.
        """
        hidden, cell = memory.chunk(2, dim=1)
        hidden, cell = self.controller(torch.relu(self.encoder(seen)), (hidden, cell))
        functions = self.function_head(hidden).masked_fill(~self.legal_functions(legal), NEVER)
        log_f = torch.log_softmax(functions, dim=1)
        log_x = self.within_functions(self.argument_head(hidden).masked_fill(~legal[:, :-1], NEVER))
        value = torch.tanh(self.value_head(hidden))[:, 0]
        return log_f, log_x, value, torch.cat([hidden, cell], dim=1)

    def joint(self, log_f: Any, log_x: Any) -> Any:
        """log π_f + log π_x for every move, then STOP, shape ``(n, m + 1)``."""
        return torch.cat([log_f[:, self.function_of] + log_x, log_f[:, -1:]], dim=1)

    def legal_functions(self, legal: Any) -> Any:
        """Functions with a legal argument, then STOP, shape ``(n, F + 1)``."""
        some = (legal[:, :-1][:, self.places] & self.present).any(dim=2)
        return torch.cat([some, legal[:, -1:]], dim=1)

    def within_functions(self, logits: Any) -> Any:
        """Log-softmax over the arguments of each function, shape ``(n, m)``."""
        table = logits[:, self.places].masked_fill(~self.present, 2 * NEVER)
        return logits - torch.logsumexp(table, dim=2)[:, self.function_of]


def argument_table(function_of: Indices, functions: int) -> tuple[NDArray[np.int64], Flags]:
    """Moves of each function in rows ``(F, longest)``, and which entries are real.

    >>> argument_table(np.array([0, 0, 1]), 2)[0].tolist()
    [[0, 1], [2, 0]]
    """
    counts = np.bincount(function_of, minlength=functions)
    places = np.zeros((functions, counts.max()), np.int64)
    present = np.arange(counts.max()) < counts[:, None]
    places[present] = np.argsort(function_of, kind="stable")
    return places, present


def build_agent(problem: Problem, inputs: int, hidden: int, seed: int) -> Agent:
    """A fresh agent for a problem; the same seed gives the same weights."""
    shape = Shape(inputs, len(problem.actions.actions), len(problem.actions), hidden)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Agent(shape, problem.actions.action_of)


def _mlp(inputs: int, hidden: int, outputs: int) -> Any:
    return nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, outputs))


def trace_loss(agent: Any, traces: Traces, masked: bool = True) -> Any:
    """Mean over traces of (V - r)² - log π_f(f) - log π_x(x), summed along each trace.

    ``masked``: actions that are not allowed are taken out first, as in planning. Without it
    the agent learns itself what is allowed, which an agent that plans alone has to know.
    """
    torch = require("torch")
    seen, legal = torch.from_numpy(traces.seen), torch.from_numpy(traces.legal)
    target, present = torch.from_numpy(traces.target), torch.from_numpy(traces.present)
    reward, success = torch.from_numpy(traces.reward), torch.from_numpy(traces.success)
    memory = torch.zeros((len(traces), 2 * agent.shape.hidden))
    stop = legal.shape[2] - 1
    total = torch.zeros(len(traces))
    for step in range(seen.shape[1]):
        here = present[:, step]
        if not bool(here.any()):
            break
        allowed = legal[:, step] if masked else torch.ones_like(legal[:, step])
        log_f, log_x, value, memory = agent(seen[:, step], memory, allowed)
        wanted = target[:, step]
        move = wanted.clamp(max=stop - 1)
        function = torch.where(wanted == stop, log_f.shape[1] - 1, agent.function_of[move])
        policy = -log_f.gather(1, function[:, None])[:, 0]
        policy = policy - torch.where(wanted == stop, 0.0, log_x.gather(1, move[:, None])[:, 0])
        policy = torch.where(success, policy, 0.0)
        total = total + torch.where(here, (value - reward) ** 2 + policy, 0.0)
    return total.mean()
