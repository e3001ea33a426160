"""Is the exact planner ever wrong? Random small problems against the independent prover.

    python benchmarks/brute_force.py [--quick] [--problems 100000] [--seed 0] [--workers N]
        [--done FILE] [--json FILE]

Every mode of action, repeated changes, weights of both signs, requirements, tiny and huge
numbers, limits, samples, missing values and steps that may be missed a little; models that cannot
be looked into and models that can. Each case is planned, some for several samples or lengths at
once. One that is wrong is printed with its seed: ``--only SEED`` runs it alone. ``--done`` keeps
what has ended, so that a run that was stopped goes on where it was; what another version of the
code has done does not count.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
import traceback
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import pear
from pear.decision import BlackBox
from pear.decision.ceilings import WhiteBox
from pear.decision.ceilings.margins import Identity
from pear.decision.ceilings.networks import Layers
from pear.decision.ceilings.trees import join_trees
from pear.decision.encoding import unit_inputs
from pear.decision.numpy_models import DecisionTree, Network
from pear.parallel import hold_to_one_thread, run_tasks
from pear.planning.exact import ExactPlanner
from pear.planning.prover import Proof, Rules, prove
from pear.problem import (
    NO_LIMITS,
    Action,
    ActionSpace,
    CostGraph,
    Feature,
    FeatureSpace,
    Goal,
    Limits,
    Plan,
    Problem,
    Requirement,
)

NAMES = "abcde"
MODELS = ("hash", "hash", "hash", "sums", "network", "tree", "forest")
BLOCK = 250
"""Problems of one task, and of one line of what is done."""
CLOSE = 1e-12
"""How far two ways of adding up one cost may differ, relative to what is added up."""


@dataclass(frozen=True)
class Case:
    """A problem, its model, one person ``(d,)`` with weights ``(s, p)``, limits and repeats.

    ``ask``: what the planner is asked for, a "plan", "optima" of each sample or "lengths".
    """

    problem: Problem
    black_box: BlackBox
    start: np.ndarray
    weights: np.ndarray
    limits: Limits
    repeats: int
    max_rows: int
    ask: str = "plan"


def random_case(seed: int) -> Case:
    """The case of a seed."""
    rng = np.random.default_rng(seed)
    features, actions = [], []
    starts: list[float] = []
    for name in NAMES[: rng.integers(2, 5)]:
        feature, values = _feature(rng, name)
        for number in range(1 + (rng.random() < 0.3)):
            actions.append(_action(rng, f"{name}{number}", feature, values, features))
        features.append(feature)
        missing = feature.may_be_missing and rng.random() < 0.4
        starts.append(np.nan if missing else feature.code(_pick(rng, values)))
    space = FeatureSpace(tuple(features))
    order = rng.permutation(len(features))
    edges = tuple(
        (NAMES[order[i]], NAMES[order[j]])
        for i in range(len(order))
        for j in range(i + 1, len(order))
        if rng.random() < 0.5
    )
    graph = CostGraph(
        space,
        edges,
        floor=_pick(rng, (1.0, 1.0, 0.0, None, 1e-9, -1.0)),
        offset=_pick(rng, (0.0, 1.0, 1.0, -0.5)),
        zero_change=_pick(rng, (1.0, None)),
    )
    goal = Goal(margin=_pick(rng, (0.0, 0.0, 0.1)))
    length = int(rng.integers(1, 4))
    problem = Problem(space, ActionSpace(space, tuple(actions)), graph, goal, max_length=length)
    start = np.array(starts)
    samples = int(_pick(rng, (1, 1, 3)))
    weights = rng.normal(2, 6, size=(samples, graph.n_weights)).round(int(rng.integers(0, 3)))
    weights *= _pick(rng, (1.0, 1.0, 1.0, 1e-9, 1e9))
    if rng.random() < 0.15:
        weights[:, rng.integers(graph.n_weights)] *= 1e12
    black_box = _model(rng, problem, start)
    inside = black_box.inside
    if isinstance(inside, WhiteBox) and (lot := rng.random()) < 0.7:
        # Looked into from the first row on, however small the problem is; of some networks only
        # the scores.
        worth_after = (
            0.0 if lot < 0.5 or not isinstance(inside.model, Layers) else inside.worth_after
        )
        black_box.inside = replace(inside, worth_after=worth_after, scored_after=0.0)
    return Case(
        problem,
        black_box,
        start,
        weights,
        _limits(rng, problem) if rng.random() < 0.4 else NO_LIMITS,
        int(_pick(rng, (1, 1, 2, 3))),
        int(_pick(rng, (100_000, 100_000, 100_000, 40))),
        str(_pick(rng, ("plan", "plan", "plan", "optima", "lengths"))),
    )


def planned(case: Case) -> Iterator[tuple[Case, Plan]]:
    """What the exact planner says, each plan with the case it is the answer to."""
    planner = ExactPlanner(
        case.problem,
        case.black_box,
        max_rows=case.max_rows,
        max_changes_per_feature=case.repeats,
    )
    if case.ask == "optima":
        plans = planner.optima(case.start, case.weights, case.limits)
        for weights, plan in zip(case.weights, plans, strict=True):
            yield replace(case, weights=weights[None]), plan
    elif case.ask == "lengths":
        plans = planner.plans_by_length(case.start, case.weights, case.limits)
        for steps, plan in enumerate(plans, 1):
            yield replace(case, limits=replace(case.limits, max_steps=steps)), plan
    else:
        yield case, planner.plan(case.start, case.weights, case.limits)


def proven(case: Case) -> tuple[Rules, Proof]:
    """What the prover says."""
    rules = Rules(case.problem, case.weights, case.limits)
    [record] = case.problem.space.decode(case.start[None])
    proof = prove(
        rules,
        case.black_box.score,
        rules.state(record),
        longest=min(case.problem.max_length, case.limits.max_steps or case.problem.max_length),
        repeats=case.repeats,
    )
    return rules, proof


def fault(case: Case) -> str:
    """What is wrong with the planner's answers; empty if nothing is."""
    try:
        answers = list(planned(case))
    except Exception:
        return "it fails: " + traceback.format_exc().strip().splitlines()[-1]
    faults = (_fault(asked, plan) for asked, plan in answers)
    return next((words for words in faults if words), "")


def _fault(case: Case, plan: Plan) -> str:
    rules, proof = proven(case)
    assert proof.complete
    state = rules.state(dict(plan.start))
    spent, size, times = 0.0, 0.0, dict.fromkeys(rules.place, 0)
    for move in plan.moves:
        after, cost, forbidden = rules.step(state, move)
        if forbidden:
            return f"step '{plan.steps[0].words}' is not allowed: {forbidden}"
        feature = rules.moves[move][0].feature
        times[feature] += 1
        place = rules.place[feature]
        seen = tuple(state[rules.place[parent]] for parent in rules.parents_of[feature])
        size += rules.cost(feature, state[place], after[place], seen)[1]
        state, spent = after, spent + cost
    close = CLOSE * max(size, abs(spent))
    verdict, lower = plan.certificate.verdict, plan.certificate.lower_bound
    begun, score = rules.state(dict(plan.start)), case.black_box.score
    accepted = bool(score(rules.matrix([state]))[0] > rules.required_score)
    accepted = accepted and rules.holds(begun, state, score)
    if plan.success != accepted:
        return f"success is {plan.success}, and the model says {accepted} at its end"
    if max(times.values()) > case.repeats:
        return f"a feature is changed {max(times.values())} times"
    if plan.success and abs(spent - plan.cost) > close:
        return f"the plan costs {spent!r}, not {plan.cost!r}"
    if verdict in ("infeasible", "unknown") and plan.success:
        return f"the verdict is {verdict}, with a plan"
    if verdict in ("optimal", "bounded") and not plan.success:
        return f"the verdict is {verdict}, without a plan"
    if verdict == "infeasible" and np.isfinite(proof.cost):
        return f"the verdict is infeasible, and {proof.words} costs {proof.cost!r}"
    if verdict == "optimal" and proof.cost < plan.cost - close:
        return f"the verdict is optimal at {plan.cost!r}, and {proof.words} costs {proof.cost!r}"
    if lower is not None and lower > proof.cost + CLOSE * max(size, abs(lower)):
        return f"the lower bound is {lower!r}, and {proof.words} costs {proof.cost!r}"
    if verdict in ("bounded", "unknown") and case.max_rows > 1_000:
        return f"the verdict is {verdict} of a small problem"
    return ""


def _feature(rng: np.random.Generator, name: str) -> tuple[Feature, list[Any]]:
    """A feature, and values that it can take."""
    kind = _pick(rng, ("numeric", "numeric", "integer", "boolean", "categorical", "ordered"))
    absent = rng.random() < 0.25
    if kind in ("categorical", "ordered"):
        values: list[Any] = ["x", "y", "z"]
        made = Feature(
            name,
            "categorical",
            categories=("x", "y", "z"),
            ordered=kind == "ordered",
            missing_counts_as="y" if absent else None,
        )
        return made, values
    if kind == "boolean":
        values = [False, True]
        return Feature(name, "boolean", missing_counts_as=False if absent else None), values
    step = 1.0 if kind == "integer" else _pick(rng, (1.0, 0.1, 1e-10, 0.5, 1e7))
    values = [step * number for number in range(5)]
    bounded = rng.random() < 0.5
    made = Feature(
        name,
        kind,
        lower=0.0 if bounded else None,
        upper=values[-1] if bounded and rng.random() < 0.5 else None,
        scale=_pick(rng, (None, (0.0, values[-1]), (0.0, values[2]))),
        missing_counts_as=values[1] if absent else None,
    )
    return made, values


def _action(
    rng: np.random.Generator, name: str, feature: Feature, values: list[Any], earlier: list[Feature]
) -> Action:
    requires = ()
    if earlier and rng.random() < 0.35:
        other = earlier[rng.integers(len(earlier))]
        if other.is_number:
            need = Requirement(other.name, lower=float(rng.integers(0, 3)))
        elif other.kind == "boolean":
            need = Requirement(other.name, values=(True,))
        else:
            need = Requirement(other.name, values=("x", "y")[: rng.integers(1, 3)])
        requires = (need,)
    common: dict[str, Any] = {"requires": requires}
    if feature.is_number and rng.random() < 0.1:
        common["tolerance"] = values[1]
    if feature.is_number or feature.ordered:
        common["direction"] = _pick(rng, ("any", "any", "increase", "decrease"))
    if feature.is_number and rng.random() < 0.6:
        step = values[1]
        amounts = rng.choice([-2, -1, 1, 2, 3], size=rng.integers(1, 4), replace=False)
        bounds = {"upper": values[-1] * 1.5} if rng.random() < 0.3 else {}
        return Action(
            name, feature.name, "add", tuple(float(step * k) for k in amounts), **common, **bounds
        )
    chosen = rng.permutation(len(values))[: rng.integers(1, 4)]
    return Action(
        name,
        feature.name,
        "set",
        tuple(values[number] for number in chosen),
        from_missing=feature.may_be_missing and rng.random() < 0.7,
        **common,
    )


def _model(rng: np.random.Generator, problem: Problem, start: np.ndarray) -> BlackBox:
    """A model that refuses the start."""
    kind, space, salt = _pick(rng, MODELS), problem.space, rng.bytes(8)
    share = _pick(rng, (0.05, 0.2, 0.5))
    inputs = unit_inputs(space)
    width, here = inputs.width, inputs(start[None])
    if kind == "hash":
        return BlackBox(Hash(salt, share, start), space, problem.goal, fingerprint="hash")
    if kind == "sums":
        mixing = np.nan_to_num(rng.normal(size=(width, 1)) / (np.abs(here.T) + 1.0))
        layers: Any = ((mixing, -(here @ mixing)[0] - 0.5),)
        model: Any = Network(unit_inputs(space), layers)
    elif kind == "network":
        first = rng.normal(size=(width, 6)) / (np.abs(here.T) + 1.0)
        second, offset = rng.normal(size=(6, 1)), rng.normal(size=6)
        at_start = np.maximum(here @ first + offset, 0.0) @ second
        model = Network(unit_inputs(space), ((first, offset), (second, -at_start[0] - 0.3)))
    elif kind == "tree":
        model = _tree(rng, space, here[0], share)
    else:
        trees = tuple(_tree(rng, space, here[0], 2 * share) for _ in range(5))
        forest = BlackBox(Forest(trees), space, problem.goal, fingerprint=kind)
        forest.inside = _read(trees)
        return forest
    return BlackBox(model, space, problem.goal, fingerprint=kind)


@dataclass(frozen=True)
class Forest:
    """The mean score of several trees."""

    trees: tuple[DecisionTree, ...]

    def __call__(self, states: np.ndarray) -> np.ndarray:
        return np.asarray(np.mean([tree(states) for tree in self.trees], axis=0))


def _read(trees: tuple[DecisionTree, ...]) -> WhiteBox:
    """A forest as it is read; no library makes one of the package's own trees."""
    read = [
        {
            "column": np.where(tree.left > 0, tree.column, -1),
            "left": tree.left,
            "right": tree.right,
            "threshold": tree.threshold,
            "value": tree.score / len(trees),
        }
        for tree in trees
    ]
    model = join_trees(read, single=True)
    return WhiteBox("a forest", trees[0].inputs, model, Identity())


@dataclass(frozen=True)
class Hash:
    """Favourable by the bits of a state: nothing to exploit, and the last bit counts."""

    salt: bytes
    share: float
    start: np.ndarray

    def __call__(self, states: np.ndarray) -> np.ndarray:
        states = np.where(np.isnan(states), np.nan, states + 0.0)
        digests = [zlib.crc32(self.salt + row.tobytes()) / 2**32 for row in states]
        same = np.array([np.array_equal(row, self.start, equal_nan=True) for row in states])
        return np.where((np.array(digests) < self.share) & ~same, 0.9, 0.1)


def _tree(rng: np.random.Generator, space: FeatureSpace, here: np.ndarray, share: float) -> Any:
    """A full tree of depth 4 with thresholds near values that occur."""
    inner, total = 15, 31
    column = rng.integers(0, len(here), total)
    node = np.arange(total)
    threshold = here[column] * rng.choice([0.5, 1.0, 1.5], total) + rng.choice([0.0, 0.5], total)
    score = np.where(rng.random(total) < share, 0.9, 0.1)
    left = np.where(node < inner, 2 * node + 1, 0)
    tree = DecisionTree(
        unit_inputs(space),
        left,
        np.where(node < inner, 2 * node + 2, 0),
        column,
        threshold,
        score,
    )
    place = 0
    while left[place]:
        lower = np.float32(here[column[place]]) <= threshold[place]
        place = tree.left[place] if lower else tree.right[place]
    score[place] = 0.1
    return tree


def _limits(rng: np.random.Generator, problem: Problem) -> Limits:
    feature = problem.space.features[rng.integers(len(problem.space))]
    action = problem.actions.actions[rng.integers(len(problem.actions.actions))]
    value = action.arguments[0]
    pair = ((action.feature, value),) if action.mode == "set" else ()
    return [
        Limits(features=(feature.name,)),
        Limits(actions=(action.name,), max_steps=2),
        Limits(values=pair, max_steps=3),
        Limits(max_steps=1, margin=0.2),
    ][rng.integers(4)]


def _pick(rng: np.random.Generator, choices: Any) -> Any:
    return choices[rng.integers(len(choices))]


def faults_of(first: int) -> tuple[list[tuple[int, str]], float]:
    """The seeds of a block that are wrong, each with its fault, and the seconds they all took."""
    began = time.process_time()
    found = [(seed, fault(random_case(seed))) for seed in range(first, first + BLOCK)]
    return [(seed, words) for seed, words in found if words], time.process_time() - began


def version() -> str:
    """A hash of all the source that takes part."""
    whole = hashlib.sha256(Path(__file__).read_bytes())
    folder = Path(pear.__file__).parent
    for name in ("problem", "decision", "planning"):
        for path in sorted((folder / name).rglob("*.py")):
            whole.update(path.read_bytes())
    return whole.hexdigest()[:16]


def read_done(path: Path | None, code: str) -> dict[int, Any]:
    """What this version of the code has done: wrong cases and seconds by the block's first seed."""
    if path is None or not path.exists():
        return {}
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return {line["first"]: line for line in lines if line["version"] == code}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=int, default=100_000, help="how many (100000)")
    parser.add_argument("--quick", action="store_true", help="2,000 problems")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first problem")
    parser.add_argument("--only", type=int, help="the one problem of this seed, with its answers")
    parser.add_argument("--workers", type=int, default=1, help="processes")
    parser.add_argument("--done", type=Path, help="keep what has ended here, and go on from it")
    parser.add_argument("--json", type=Path, help="write the figures here")
    options = parser.parse_args()
    if options.only is not None:
        case = random_case(options.only)
        print(case, proven(case)[1], fault(case) or "right", sep="\n\n")
        return
    count = 2_000 if options.quick else options.problems
    blocks, code = range(options.seed, options.seed + count, BLOCK), version()
    done = {first: line for first, line in read_done(options.done, code).items() if first in blocks}
    left = [first for first in blocks if first not in done]
    # Workers find the function by the name of this file, not of the program.
    from brute_force import faults_of as function

    found = run_tasks(function, left, workers=options.workers, initializer=hold_to_one_thread)
    for index, (wrong, seconds) in found:
        line = {"first": left[index], "version": code, "wrong": wrong, "cpu_seconds": seconds}
        done[left[index]] = line
        if options.done:
            with options.done.open("a") as file:
                file.write(json.dumps(line) + "\n")
        for seed, words in wrong:
            print(f"seed {seed}: {words}", flush=True)
        if len(done) % 40 == 0:
            print(f"{len(done) * BLOCK:,} of {len(blocks) * BLOCK:,}", flush=True)
    wrong = [case for line in done.values() for case in line["wrong"]]
    seconds = sum(line["cpu_seconds"] for line in done.values())
    problems = len(blocks) * BLOCK
    print(
        f"{problems:,} problems, {len(wrong)} wrong, {seconds:.0f} s on the processor "
        f"({problems / seconds:.0f} a second)"
    )
    if options.json:
        figures = {"problems": problems, "wrong": len(wrong), "cpu_seconds": seconds}
        options.json.write_text(json.dumps(figures, indent=2) + "\n")
    raise SystemExit(bool(wrong))


if __name__ == "__main__":
    main()
