"""What has been learned, for which problem, and how is it kept in a file?

A policy is an agent's weights with what they were trained for; its :class:`Observer` says what
the agent sees of a person. Files are safetensors: no code is ever run by loading one.

Reference: paper, appendix "Weighted-FARE": the state, and for W-FARE the mean cost of each
function over all its arguments.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from pear.arrays import Flags, Floats
from pear.decision.encoding import Inputs, unit_inputs
from pear.errors import FingerprintMismatch, InvalidSetting, ModelRefused
from pear.optional import require
from pear.planning.tree.trees import Evaluation
from pear.problem import Problem
from pear.problem.features import States
from pear.writing import replacing

Kind = Literal["rl", "fare", "wfare"]
FORMAT = "pear-policy-1"


@dataclass(frozen=True)
class Policy:
    """An agent trained for one problem.

    ``kind`` is the planner it was trained for, ``mean_weights`` ``(p,)`` the mean of the
    prior it was trained with, ``settings`` what training was given.
    """

    problem: Problem
    kind: Kind
    agent: Any
    mean_weights: Floats
    settings: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise InvalidSetting(
                f"'kind' must be one of {', '.join(get_args(Kind))} (got {self.kind!r})"
            )

    @classmethod
    def fresh(
        cls,
        problem: Problem,
        kind: Kind,
        mean_weights: Floats,
        *,
        hidden: int = 64,
        seed: int = 0,
        settings: dict[str, Any] | None = None,
    ) -> Policy:
        """An untrained policy."""
        from pear.planning.learned.network import build_agent

        width = Observer(problem, kind == "wfare").width
        mean = problem.costs.check_weights(mean_weights)
        agent = build_agent(problem, width, hidden, seed)
        return cls(problem, kind, agent, mean, settings or {})

    @cached_property
    def observer(self) -> Observer:
        return Observer(self.problem, self.kind == "wfare")

    def save(self, path: str | Path) -> None:
        """Write the policy as safetensors, its problem and settings in the metadata; whole or
        not at all."""
        save = require("safetensors.torch").save_file
        torch = require("torch")
        tensors = {f"agent.{k}": v.contiguous() for k, v in self.agent.state_dict().items()}
        tensors["mean_weights"] = torch.as_tensor(self.mean_weights)
        with replacing(path) as part:
            save(tensors, str(part), metadata=self.metadata())

    def metadata(self) -> dict[str, str]:
        """What the file says about itself."""
        return {
            "format": FORMAT,
            "kind": self.kind,
            "hidden": str(self.agent.shape.hidden),
            "problem": self.problem.fingerprint,
            "problem_name": self.problem.name,
            "description": json.dumps(describe(self.problem)),
            "settings": json.dumps(self.settings),
        }

    @classmethod
    def load(cls, path: str | Path, problem: Problem) -> Policy:
        """Read a policy; one trained for another problem is refused, saying what differs."""
        tensors, metadata = read_safetensors(path)
        if metadata.get("format") != FORMAT:
            raise ModelRefused(
                f"'{path}' is not a policy of this package (format {metadata.get('format')!r}); "
                "train one with 'pear train'"
            )
        check_problem(path, metadata, problem)
        try:
            settings = json.loads(metadata["settings"])
            mean = tensors.pop("mean_weights").numpy()
            weights = {k.removeprefix("agent."): v for k, v in tensors.items()}
            # The file's own tensors say how large the agent is: nothing larger is ever built.
            hidden = len(weights["encoder.0.bias"])
            kind: Any = metadata["kind"]
            policy = cls.fresh(problem, kind, mean, hidden=hidden)
            policy.agent.load_state_dict(weights)
        except (KeyError, ValueError, TypeError, RuntimeError, InvalidSetting) as error:
            raise ModelRefused(
                f"the policy '{path}' is damaged ({error}); train it again"
            ) from None
        if not all(bool(tensor.isfinite().all()) for tensor in weights.values()):
            raise ModelRefused(
                f"the policy '{path}' holds numbers that are not finite; train it again"
            )
        return cls(problem, kind, policy.agent, mean, settings)


@dataclass(frozen=True)
class NetworkEvaluator:
    """Prior and value from a policy's agent, for the tree search."""

    policy: Policy
    playouts: bool = False

    @property
    def memory_width(self) -> int:
        return int(2 * self.policy.agent.shape.hidden)

    def __call__(
        self,
        states: States,
        move_costs: Floats,
        legal: Flags,
        memory: NDArray[np.float32],
    ) -> Evaluation:
        torch = require("torch")
        agent = self.policy.agent
        seen = torch.from_numpy(self.policy.observer(states, move_costs))
        with torch.inference_mode():
            log_f, log_x, value, after = agent(
                seen, torch.from_numpy(memory), torch.from_numpy(legal)
            )
            prior = torch.exp(agent.joint(log_f, log_x))
        masked = np.where(legal, prior.numpy().astype(float), 0.0)
        masked /= np.maximum(masked.sum(axis=1, keepdims=True), 1e-12)
        return Evaluation(masked, value.numpy().astype(float), after.numpy())


def describe(problem: Problem) -> dict[str, Any]:
    """The parts of a problem that a policy depends on, each as text to compare."""
    return {
        "features": [f"{f.name} ({f.kind})" for f in problem.space.features],
        "categories and scales": [
            f"{f.name}: {list(f.categories) or f.scale}" for f in problem.space.features
        ],
        "feature settings": [_settings(f, "kind", "scale") for f in problem.space.features],
        "actions": [f"{a.name}: {list(a.arguments)}" for a in problem.actions.actions],
        "action settings": [_settings(a, "arguments") for a in problem.actions.actions],
        "edges": [f"{a}->{b}" for a, b in problem.costs.edges],
        "cost settings": [
            f"{name} {getattr(problem.costs, name)!r}"
            for name in ("floor", "offset", "zero_change")
        ],
        "goal": [f"{name} {value!r}" for name, value in asdict(problem.goal).items()],
        "max_length": problem.max_length,
    }


def check_problem(path: str | Path, metadata: dict[str, str], problem: Problem) -> None:
    """Refuse a policy trained for another problem, naming the parts that differ."""
    if metadata.get("problem") == problem.fingerprint:
        return
    try:
        trained = dict(json.loads(metadata.get("description", "{}")))
    except (TypeError, ValueError):
        trained = {}
    here = json.loads(json.dumps(describe(problem)))
    differing = [part for part in here if part in trained and trained[part] != here[part]]
    details = "; ".join(_difference(part, trained.get(part), here[part]) for part in differing)
    raise FingerprintMismatch(
        f"the policy '{path}' was trained for the problem '{metadata.get('problem_name')}' "
        f"({metadata.get('problem')}), not for '{problem.name}' ({problem.fingerprint}): "
        f"{details or 'the file does not say what differs'}; train one for this problem"
    )


def read_safetensors(path: str | Path) -> tuple[dict[str, Any], dict[str, str]]:
    """Tensors and metadata of a file, or a refusal that says why."""
    if not Path(path).is_file():
        raise ModelRefused(f"there is no policy file '{path}'; train one with 'pear train'")
    try:
        with require("safetensors").safe_open(str(path), framework="pt") as opened:
            metadata = dict(opened.metadata() or {})
            return {name: opened.get_tensor(name) for name in opened.keys()}, metadata  # noqa: SIM118
    except (OSError, ValueError) as error:
        raise ModelRefused(f"'{path}' cannot be read as safetensors: {error}") from error
    except Exception as error:
        if type(error).__name__ != "SafetensorError":
            raise
        raise ModelRefused(f"'{path}' cannot be read as safetensors: {error}") from error


def _settings(declared: Any, *told: str) -> str:
    """A feature, action or requirement with its settings, without those reported elsewhere."""
    words = ("name", "label", "unit", "phrase", "language", "reviewed", "used", "categories")
    passed = (*words, *told)
    known = [(entry.name, getattr(declared, entry.name)) for entry in fields(declared)]
    said = [(name, value) for name, value in known if name not in passed and value]
    zero = [(name, value) for name, value in known if name in ("lower", "upper") and value == 0]
    parts = [
        f"{name} {' and '.join(map(_settings, value)) if name == 'requires' else value}"
        for name, value in sorted([*said, *zero])
    ]
    return f"{getattr(declared, 'name', '')} ({', '.join(parts)})".strip()


def _difference(part: str, trained: Any, here: Any) -> str:
    if not isinstance(trained, list) or not isinstance(here, list):
        return f"{part} was {trained!r}, is {here!r}"
    gone = [str(item) for item in trained if item not in here]
    new = [str(item) for item in here if item not in trained]
    shown = [f"without {', '.join(gone[:3])}"] if gone else []
    shown += [f"with {', '.join(new[:3])}"] if new else []
    return f"{part}: now {' and '.join(shown) or 'in another order'}"


COST_UNIT = 100.0
"""Costs are seen in hundreds, to lie where the other inputs lie."""


@dataclass(frozen=True)
class Observer:
    """Turns states into the agent's input; ``with_costs`` adds what W-FARE sees."""

    problem: Problem
    with_costs: bool

    @cached_property
    def _inputs(self) -> Inputs:
        return unit_inputs(self.problem.space)

    @property
    def width(self) -> int:
        """Columns of an observation."""
        functions = len(self.problem.actions.actions) if self.with_costs else 0
        return self._inputs.width + functions

    def __call__(self, states: States, move_costs: Floats) -> NDArray[np.float32]:
        """Observations ``(n, width)`` of states ``(n, d)`` whose moves cost ``(n, m)``."""
        seen = self._inputs(states)
        if self.with_costs:
            seen = np.concatenate([seen, self.function_costs(move_costs) / COST_UNIT], axis=1)
        return seen.astype(np.float32)

    def function_costs(self, move_costs: Floats) -> Floats:
        """Mean cost of each function over its arguments, shape ``(n, functions)``."""
        counts = np.bincount(self.problem.actions.action_of)
        starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
        return np.asarray(np.add.reduceat(move_costs, starts, axis=1) / counts)
