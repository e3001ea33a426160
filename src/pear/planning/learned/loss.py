"""How wrong is the agent about a batch of traces?

Reference: paper, eqn. rl-policy-loss: squared error of the value and the cross-entropies of
function and argument. (The paper prints V - r²; the squared error (V - r)² is meant.)
"""

from __future__ import annotations

from typing import Any

from pear.optional import require
from pear.planning.learned.traces import Traces


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
