"""How many people get a proof, in what time, and is what is read from a model ever wrong?

    PEAR_BENCH=... PEAR_DATA=... python benchmarks/certificates.py [--quick] [--json FILE]

``decided``: the share of people with a verdict of optimal or infeasible within a second of
processor time each. ``time_ratio``: the mean time of the same people over that of the same search
without a look inside the model, person by person in turn; ``search_ratio``: both without the time
in which the end of each plan is asked alone, which is no search and the same for both. ``milp``:
beside scipy's ``milp`` (HiGHS) on costs that add up, for a logistic regression of 30 features.
``trained``: LightGBM on generated tables, within five seconds each. ``ceiling``: draws that compare
ceilings with the models' own scores.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from _draws import KINDS, draws, lacking, random_black_box
from _trained import breast_cancer, lightgbm_member
from pear.datasets import load_dataset, paper_prior_means, user_set
from pear.datasets.published import published_classifier, published_problem, published_users
from pear.decision import BlackBox, from_sklearn
from pear.parallel import hold_to_one_thread
from pear.planning.exact import ExactPlanner
from pear.planning.planner import confirm
from pear.problem import Plan

Figures = dict[str, float]
World = tuple[ExactPlanner, Any, Any]
"""A planner, and the states and weights of people."""

TREES = ("forest", "boosted", "lightgbm", "xgboost")
TRAINED_SIZES = (16, 24, 32)
DRAWS = 1_000_000


@dataclass(frozen=True)
class Answers:
    """Plans of n people, and the seconds on the processor each took ``(n,)``."""

    plans: list[Plan]
    seconds: Any

    def decided(self, within: float) -> float:
        """The share with a proof within so many seconds."""
        proven = [plan.certificate.verdict in ("optimal", "infeasible") for plan in self.plans]
        return float(np.mean(np.array(proven) & (self.seconds <= within)))

    def gap(self, within: float) -> float:
        """The mean gap of plans without a proof, as a share of their costs."""
        gaps = [
            1.0 if plan.certificate.gap is None else plan.certificate.gap / plan.cost
            for plan, seconds in zip(self.plans, self.seconds, strict=True)
            if plan.success and (plan.certificate.verdict == "bounded" or seconds > within)
        ]
        return float(np.mean(gaps)) if gaps else 0.0


def answers(planner: ExactPlanner, states: Any, weights: Any) -> Answers:
    """A plan for each person, one after the other."""
    [found] = side_by_side([planner], states, weights)
    return found


def side_by_side(planners: list[ExactPlanner], states: Any, weights: Any) -> list[Answers]:
    """Plans of several planners, who take turns at each person; compiled before the first one."""
    for planner in planners:
        _compile(planner, states[0], weights[0])
    plans: list[list[Plan]] = [[] for _ in planners]
    seconds: list[list[float]] = [[] for _ in planners]
    turns = list(enumerate(planners))
    for state, weight in zip(states, weights, strict=True):
        for number, planner in turns:
            began = time.process_time()
            plans[number].append(planner.plan(state, weight))
            seconds[number].append(time.process_time() - began)
        turns.reverse()  # Whoever is second finds caches that are warm.
    return [Answers(*found) for found in zip(plans, map(np.array, seconds), strict=True)]


def _compile(planner: ExactPlanner, state: Any, weights: Any) -> None:
    """Compile the search, with a look inside the model from the first row on if it has one."""
    inside = planner.black_box.inside
    planner.plan(state, weights)
    if inside is not None:
        planner.black_box.inside = replace(inside, worth_after=0.0)
        planner.plan(state, weights)
        planner.black_box.inside = inside


def confirming(planner: ExactPlanner, plans: list[Plan]) -> float:
    """Mean seconds in which the end of a plan is asked alone."""
    began = time.process_time()
    confirm(planner.problem, planner.black_box, plans)
    return (time.process_time() - began) / len(plans)


def adult(kind: str, quick: bool) -> World:
    """A model of this kind, trained on Adult, and refused people."""
    data = load_dataset("adult")
    problem = data.problem
    train = data.train[:20_000]
    table = problem.space.frame(data.states[train])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = _pipeline(problem, _estimator(kind)).fit(table, data.favourable[train])
    goal = replace(problem.goal, favourable=(True,))
    black_box = from_sklearn(model, replace(problem, goal=goal))
    people = user_set(data, black_box, "all", n=20 if quick else 60)
    means, rng = paper_prior_means("adult"), np.random.default_rng(0)
    weights = means[rng.integers(0, len(means), len(people.states))]
    weights += rng.normal(size=weights.shape)
    return ExactPlanner(problem, black_box), people.states, weights


def _estimator(kind: str) -> Any:
    from sklearn import ensemble, neural_network

    if kind == "lightgbm":
        import lightgbm

        return lightgbm.LGBMClassifier(n_estimators=200, verbose=-1, random_state=0, n_jobs=1)
    if kind == "xgboost":
        import xgboost

        return xgboost.XGBClassifier(n_estimators=200, random_state=0, n_jobs=1)
    if kind == "mlp":
        return neural_network.MLPClassifier((50, 30), max_iter=15, random_state=0)
    if kind == "boosted":
        return ensemble.HistGradientBoostingClassifier(
            max_iter=300, early_stopping=False, random_state=0
        )
    return ensemble.RandomForestClassifier(100, min_samples_leaf=5, random_state=0)


def _pipeline(problem: Any, estimator: Any) -> Any:
    from sklearn.compose import make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    features = problem.space.features
    words = [feature.name for feature in features if feature.is_categorical]
    numbers = [feature.name for feature in features if not feature.is_categorical]
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    return make_pipeline(
        make_column_transformer((encoder, words), (StandardScaler(), numbers)), estimator
    )


def published(name: str, users: str, quick: bool, *, alone: int) -> World:
    """The paper's users and network."""
    problem = published_problem(name, max_length=5)
    found = published_users(problem, name, "network", users)
    every = alone if quick else 1
    planner = ExactPlanner(problem, published_classifier(problem, name, "network"))
    return planner, found.states[::every], found.weights[::every]


def linear30(quick: bool) -> World:
    """Breast cancer: 30 features, a logistic regression."""
    member = breast_cancer(20 if quick else 100, seed=0)
    return ExactPlanner(member.problem, member.black_box), member.states, member.weights


WORLDS: dict[str, Callable[[bool], World]] = {
    "forest": lambda quick: adult("forest", quick),
    "boosted": lambda quick: adult("boosted", quick),
    "lightgbm": lambda quick: adult("lightgbm", quick),
    "xgboost": lambda quick: adult("xgboost", quick),
    "mlp": lambda quick: adult("mlp", quick),
    "linear30": linear30,
    "adult_network": lambda quick: published("adult", "all", quick, alone=6),
    "credit_hard": lambda quick: published("givemecredit", "hard", quick, alone=6),
}


def decided(names: list[str], quick: bool) -> Figures:
    """With and without a look inside, on the same people."""
    heads = f"{'decided':>9}{'without':>9}{'rows':>9}{'ms':>8}{'p95 ms':>9}"
    print(f"{'':16}{heads}{'time ratio':>12}{'search':>8}")
    figures: Figures = {}
    for name in names:
        planner, states, weights = WORLDS[name](quick)
        blind = replace(planner, look_inside=False)
        ours, without = side_by_side([planner, blind], states, weights)
        alone = confirming(planner, ours.plans)
        rows = float(np.median([plan.certificate.rows for plan in ours.plans]))
        mean, mean_without = ours.seconds.mean(), without.seconds.mean()
        ratio, search = mean / mean_without, (mean - alone) / (mean_without - alone)
        milliseconds = 1e3 * np.quantile(ours.seconds, [0.5, 0.95])
        worse = [
            mine.cost - other.cost
            for mine, other in zip(ours.plans, without.plans, strict=True)
            if mine.success and other.success
        ]
        figures |= {
            f"decided.{name}": ours.decided(1.0),
            f"decided_without.{name}": without.decided(1.0),
            f"rows.{name}": rows,
            f"time_ratio.{name}": float(ratio),
            f"search_ratio.{name}": float(search),
            f"median_cpu_ms.{name}": float(milliseconds[0]),
            f"p95_cpu_ms.{name}": float(milliseconds[1]),
            f"dearer.{name}": float(max(worse, default=0.0)),
        }
        print(
            f"{name:16}{ours.decided(1.0):>9.3f}{without.decided(1.0):>9.3f}{rows:>9.0f}"
            f"{milliseconds[0]:>8.1f}{milliseconds[1]:>9.1f}{ratio:>12.2f}{search:>8.2f}",
            flush=True,
        )
    return figures


def beside_milp(quick: bool) -> Figures:
    """The same cheapest plans by a general solver, where costs add up."""
    member = breast_cancer(20 if quick else 100, seed=1, separable=True)
    planner = ExactPlanner(member.problem, member.black_box)
    ours = answers(planner, member.states, member.weights)
    spent, gaps = [], []
    for plan, state, weights in zip(ours.plans, member.states, member.weights, strict=True):
        began = time.process_time()
        cost = solved(planner, state, weights)
        spent.append(time.process_time() - began)
        if (cost is None) != (not plan.success):
            raise SystemExit(f"milp says {cost}, the plan {plan.certificate.verdict}")
        if cost is not None:
            gaps.append((plan.cost - cost) / cost)
    figures = {
        "milp.time_ratio": float(ours.seconds.mean() / np.mean(spent)),
        "milp.cost_gap": float(max(0.0, np.round(max(gaps), 7))),
        "milp.decided": ours.decided(1.0),
        "milp.median_cpu_ms": 1e3 * float(np.median(spent)),
        "milp.our_median_cpu_ms": 1e3 * float(np.median(ours.seconds)),
    }
    print("\nbeside scipy's milp:", {name[5:]: round(x, 4) for name, x in figures.items()})
    return figures


def solved(planner: ExactPlanner, state: Any, weights: Any) -> float | None:
    """The cheapest plan's cost by mixed-integer programming; None where there is none."""
    problem, black_box = planner.problem, planner.black_box
    actions, inside = problem.actions, black_box.inside
    legal = np.flatnonzero(actions.changes_legally(state[None])[0])
    ends = actions.apply(np.repeat(state[None], len(legal), axis=0), legal)
    margins = inside.model.margins(inside.encode(np.concatenate([state[None], ends])))
    costs = problem.costs.costs(
        np.repeat(state[None], len(legal), axis=0), actions, legal, weights[None]
    )[:, 0]
    features = actions.feature_of[legal]
    once = (features == np.unique(features)[:, None]).astype(float)
    needed = inside.link.required(problem.goal.required()) - margins[0]
    result = milp(
        costs,
        integrality=np.ones(len(legal)),
        bounds=Bounds(0, 1),
        constraints=[
            LinearConstraint(once, ub=1),
            LinearConstraint(np.ones((1, len(legal))), ub=planner.longest),
            LinearConstraint((margins[1:] - margins[0])[None], lb=needed),
        ],
        options={"mip_rel_gap": 0.0},
    )
    return None if result.x is None else float(costs @ np.rint(result.x))


def trained(quick: bool) -> Figures:
    """LightGBM on generated tables: the share certified within five seconds."""
    print(f"\n{'trained':16}{'certified':>11}{'positive':>10}{'gap':>7}{'ms':>8}{'p95 ms':>9}")
    figures: Figures = {}
    for size in TRAINED_SIZES:
        member = lightgbm_member(size, 20 if quick else 60, seed=0)
        planner = ExactPlanner(member.problem, member.black_box, max_rows=1_000_000)
        found = answers(planner, member.states, member.weights)
        positive = Answers(found.plans[::2], found.seconds[::2])
        milliseconds = 1e3 * np.quantile(found.seconds, [0.5, 0.95])
        figures |= {
            f"trained.certified_{size}": found.decided(5.0),
            f"trained.certified_positive_{size}": positive.decided(5.0),
            f"trained.gap_{size}": found.gap(5.0),
            f"trained.median_cpu_ms_{size}": float(milliseconds[0]),
        }
        print(
            f"{size:<16}{found.decided(5.0):>11.3f}{positive.decided(5.0):>10.3f}"
            f"{found.gap(5.0):>7.2f}{milliseconds[0]:>8.1f}{milliseconds[1]:>9.1f}",
            flush=True,
        )
    return figures


def ceilings(n_draws: int) -> Figures:
    """Random models, people, partial assignments and completions; none may score too high."""
    kinds = [kind for kind in KINDS if not lacking(kind)]
    each = -(-n_draws // len(kinds))
    made = wrong = 0
    for kind in kinds:
        rng, mine = np.random.default_rng([3, KINDS.index(kind)]), 0
        while mine < each:
            black_box: BlackBox = random_black_box(kind, rng)
            for _ in range(12):
                count, too_low = draws(black_box, rng, 40, 25)
                mine, wrong = mine + count, wrong + too_low
            if not mine:
                raise SystemExit(f"nothing was read from {kind}")
        made += mine
    print(f"\n{wrong} of {made:,} draws above their ceiling, {len(kinds)} kinds of model")
    return {"ceiling.violations": wrong, "ceiling.draws": made}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--quick", action="store_true", help="fewer people")
    parts = (*WORLDS, "milp", "trained", "ceilings")
    parser.add_argument("--only", nargs="+", choices=parts, default=list(parts), help="parts")
    parser.add_argument("--draws", type=int, default=DRAWS)
    options = parser.parse_args()
    hold_to_one_thread()
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n")
    figures = decided([name for name in options.only if name in WORLDS], options.quick)
    if "milp" in options.only:
        figures |= beside_milp(options.quick)
    if "trained" in options.only:
        figures |= trained(options.quick)
    if "ceilings" in options.only:
        figures |= ceilings(options.draws)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
