"""Which difference of the published program explains its figures? Methods for trials alone.

No profile runs them; ``pear bench competitors --methods face,face-cut`` does. Each is one of
our methods with one thing done as the published program does it, read in its source
(github.com/unitn-sml/pear-personalized-algorithmic-recourse and unitn-sml/recourse-fare) or
in the paper. What they showed is in the ``why`` of the methods.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pear.elicitation import Session
from pear.experiments.assets import trainer_of
from pear.experiments.conversations import PEAR_L, PEAR_NL, Conversations
from pear.experiments.methods import CSCF, FACE, FARE_MEAN, MCTS, RL, Build, Method
from pear.experiments.tasks import Task
from pear.experiments.worlds import World
from pear.planning.planner import Planner

PEOPLE = 500
"""What the published FARE is trained on: as many steps, of one person each."""


@dataclass(frozen=True)
class RandomQuestions(Conversations):
    """PEAR over W-FARE whose questions are k plans drawn at random among the candidates."""

    def _session(self, planner: Any, state: Any, prior: Any, task: Task, user: int) -> Session:
        from pear.experiments.trial_planners import RandomSession

        seed = int(task.generator(user, 3).integers(2**31))
        return RandomSession(planner, state, prior, settings=self.settings(task), seed=seed)


def _once(world: World, assets: dict[str, Any], problem: Any) -> Planner:
    from pear.experiments.trial_planners import SingleChanges

    return SingleChanges(assets["wfare"], world.black_box)


def _path(world: World, assets: dict[str, Any], problem: Any) -> Planner:
    from pear.planning.learned import WFARE

    return WFARE(assets["wfare"], world.black_box, returns="path")


def _wfare_path(world: World, assets: dict[str, Any], task: Task) -> Planner:
    return _path(world, assets, world.problem)


def _wfare_once(world: World, assets: dict[str, Any], task: Task) -> Planner:
    return _once(world, assets, world.problem)


def _mcts(world: World, assets: dict[str, Any], task: Task, **settings: Any) -> Planner:
    from pear.planning.tree import TreeSearch

    settings = {"simulations": world.simulations, "returns": "path", **settings}
    return TreeSearch(world.problem, world.black_box, **settings)


def _mcts_free(world: World, assets: dict[str, Any], task: Task) -> Planner:
    from pear.planning.tree.rules import LengthRules

    return _mcts(world, assets, task, rules=LengthRules(cost_weight=0.0))


def _mcts_drawn(world: World, assets: dict[str, Any], task: Task, weight: float) -> Planner:
    from pear.experiments.trial_planners import DrawnTreeSearch
    from pear.planning.tree.rules import LengthRules

    return DrawnTreeSearch(
        world.problem,
        world.black_box,
        simulations=world.simulations,
        returns="path",
        rules=LengthRules(cost_weight=weight),
    )


def _mcts_noise(world: World, assets: dict[str, Any], task: Task) -> Planner:
    from pear.experiments.trial_planners import NoisePrior

    rng = task.generator(task.first, 4)
    return NoisePrior(assets["fare"], world.black_box, simulations=15, returns="path", noise=rng)


def _fare_separate(world: World, assets: dict[str, Any], task: Task) -> Planner:
    from pear.experiments.trial_planners import SeparateFARE

    return SeparateFARE(assets["fare"], world.black_box, returns="path")


def _fare_brief(world: World, assets: dict[str, Any], task: Task) -> Planner:
    from pear.experiments.trial_planners import SeparateFARE

    return SeparateFARE(_brief_policy(world, task), world.black_box, returns="path")


def _rl_brief(world: World, assets: dict[str, Any], task: Task) -> Planner:
    from pear.planning.learned import PolicyOnly

    return PolicyOnly(_brief_policy(world, task), world.black_box)


_brief: dict[tuple[str, int], Any] = {}


def _brief_policy(world: World, task: Task) -> Any:
    """A policy of FARE trained as long, and as small, as the published one; anew for each run."""
    from pear.planning.learned.training import TrainingSettings

    key = (world.black_box.fingerprint, task.run)
    if key not in _brief:
        settings = TrainingSettings(
            kind="fare",
            iterations=PEOPLE // 10,
            batch_people=10,
            gradient_steps=10,
            gradient_batch=50,
            hidden=5 if world.dataset == "givemecredit" else 51,
            simulations=15,
            learning_rate=world.learning_rate,
            validate_every=PEOPLE // 10,
            validation_people=10,
            seed=task.run,
        )
        _brief[key] = trainer_of(world, settings, workers=1).run()
    return _brief[key]


def _face(world: World, assets: dict[str, Any], task: Task, **settings: Any) -> Planner:
    from pear.planning.neighbours import NeighboursPlanner

    settings = {"max_length": 99, "seed": task.run, **settings}
    return NeighboursPlanner(world.problem, world.black_box, world.training, **settings)


def _face_cut(world: World, assets: dict[str, Any], task: Task, hops: int) -> Planner:
    from pear.experiments.trial_planners import CutNeighbours

    return CutNeighbours(
        world.problem,
        world.black_box,
        world.training,
        k=75,
        max_length=99,
        seed=task.run,
        hops=hops,
    )


def _cscf(world: World, assets: dict[str, Any], task: Task, **settings: Any) -> Planner:
    from pear.planning.evolution import EvolutionPlanner

    return EvolutionPlanner(world.problem, world.black_box, **settings)


def _cscf_stop(world: World, assets: dict[str, Any], task: Task) -> Planner:
    from pear.experiments.trial_planners import StopEvolution

    population, generations = assets["evolution"]
    return StopEvolution(
        world.problem, world.black_box, population=population, generations=generations
    )


def _trial(method: Method, name: str, label: str, build: Build, **changes: Any) -> Method:
    return replace(method, name=name, label=label, build=build, published="", why="", **changes)


TRAINED = {"assets": (), "reseeds": "the policy's training"}
PEAR_RANDOM_NL = RandomQuestions(
    "pear-random-nl", "PEAR (NL), random questions", PEAR_NL.build, "noiseless", "paper",
    assets=("wfare",),
)  # fmt: skip
PEAR_RANDOM_L = replace(
    PEAR_RANDOM_NL, name="pear-random-l", label="PEAR (L), random questions", response="logistic"
)
PEAR_ONCE_NL = replace(
    PEAR_NL, name="pear-once-nl", label="PEAR (NL), single changes", build=_once, published=""
)
PEAR_ONCE_L = replace(
    PEAR_L, name="pear-once-l", label="PEAR (L), single changes", build=_once, published=""
)
PEAR_PATH_L = replace(
    PEAR_L, name="pear-path-l", label="PEAR (L), paths of the search", build=_path, published=""
)
PEAR_PLAIN_L = replace(
    PEAR_RANDOM_L, name="pear-plain-l", label="PEAR (L), random, single changes", build=_once
)
WFARE_PATH = Method(
    "wfare-path", "W-FARE, true weights, path", _wfare_path, assets=("wfare",), weights="true"
)
WFARE_ONCE = Method(
    "wfare-once", "W-FARE, true weights, single changes", _wfare_once,
    assets=("wfare",), weights="true",
)  # fmt: skip
MCTS_BEST = _trial(MCTS, "mcts-best", "MCTS, best plan met", partial(_mcts, returns="best"))
MCTS_100 = _trial(MCTS, "mcts-100", "MCTS, 100 simulations", partial(_mcts, simulations=100))
MCTS_FREE = _trial(MCTS, "mcts-free", "MCTS, costs not looked at", _mcts_free)
MCTS_DRAWN = _trial(
    MCTS, "mcts-drawn", "MCTS, function and argument drawn apart", partial(_mcts_drawn, weight=1.0)
)
MCTS_DRAWN_FREE = _trial(
    MCTS, "mcts-drawn-free", "MCTS, drawn apart, costs not looked at",
    partial(_mcts_drawn, weight=0.0),
)  # fmt: skip
MCTS_NOISE = _trial(
    MCTS,
    "mcts-noise",
    "MCTS, values of FARE's network, noise as prior, drawn apart",
    _mcts_noise,
    assets=("fare",),
)
FARE_SEPARATE = _trial(FARE_MEAN, "fare-separate", "FARE, separate maxima", _fare_separate)
FARE_BRIEF = _trial(
    FARE_MEAN, "fare-brief", "FARE, trained on 500 people, separate maxima", _fare_brief, **TRAINED
)
RL_BRIEF = _trial(RL, "rl-brief", "RL, policy of FARE trained on 500 people", _rl_brief, **TRAINED)
FACE_SHORT = _trial(FACE, "face-short", "FACE, at most five changes", partial(_face, max_length=5))
FACE_CUT = _trial(
    FACE, "face-cut", "FACE, neighbours of everybody, then cut", partial(_face_cut, hops=0)
)
FACE_HOPS = _trial(
    FACE, "face-hops", "FACE, cut, at most four points away", partial(_face_cut, hops=4)
)
CSCF_SMALL = _trial(
    CSCF, "cscf-small", "CSCF, population 20, 10 generations",
    partial(_cscf, population=20, generations=10), assets=(),
)  # fmt: skip
CSCF_STOP = _trial(CSCF, "cscf-stop", "CSCF, with STOP as an action", _cscf_stop)
