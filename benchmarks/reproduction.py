"""Is the paper's own system reproduced? PEAR over W-FARE by algorithms 1 and 2, on its own users.

For the users of the four network sets: mean cost after ten questions (logistic answers, k = 2, one
run; STOP not counted) beside that of the published system for the same users (mean of a user over
its runs), and the ratio of the two on users both solve. Policies come from the cache, and are
trained when they are not there (a few minutes each). Needs ``PEAR_BENCH`` and ``PEAR_DATA``.

``--quick`` takes the first 60 users of each set, otherwise all 300 are taken (half as many with
``--edges``).

``--edges FILE`` asks something else: what missing edges of the cost graph cost somebody whose
weights we know. The certified search plans under the graph without a share of its edges, for the
true weights of the edges left (changing each feature once, or as often as it likes, as W-FARE may)
and for the mean weights, over five draws of the edges removed; what its plans really cost is
written as CSV, one row per set, share and draw, with the edges that are gone.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
import pandas as pd

from pear.experiments.conversations import PEAR_L, corrupted, prior_of
from pear.experiments.experiment import Task, build_world
from pear.experiments.methods import true_cost
from pear.experiments.profiles import PROFILES
from pear.experiments.summary import final, paired, published_curve, published_rows, user_costs
from pear.experiments.trained import trained_policy
from pear.parallel import run_tasks
from pear.planning.exact import ExactPlanner

SETS = {
    "adult_all": ("adult", "all"),
    "adult_hard": ("adult", "hard"),
    "credit_all": ("givemecredit", "all"),
    "credit_hard": ("givemecredit", "hard"),
}
QUESTIONS, K = 10, 2


def conversations(dataset: str, users: str, people: int) -> pd.DataFrame:
    """Rows of PEAR (L) with the first users of a set, one per user and number of questions."""
    world = build_world(dataset, "network", users)
    policy = trained_policy(world, "wfare", PROFILES["reduced"])
    task = Task(dataset, "network", users, PEAR_L.name, 0, 0, people, QUESTIONS, K)
    rows = pd.DataFrame(PEAR_L.solve(world, {"wfare": policy}, task))
    return rows.assign(
        dataset=dataset, classifier="network", users=users, method=task.method, k=K, corruption=0.0
    )


SHARES, DRAWS = (0.0, 0.15, 0.25, 0.5, 1.0), 5


def edges_removed(what: tuple[str, int, float, int]) -> dict[str, object]:
    """What plans made under a graph without some edges really cost the first users of a set."""
    name, draw, share, people = what
    dataset, users = SETS[name]
    world = build_world(dataset, "network", users).first(people)
    problem, positions = corrupted(world.problem, share, draw)
    once = ExactPlanner(problem, world.black_box)
    often = ExactPlanner(problem, world.black_box, max_changes_per_feature=world.problem.max_length)
    truth, mean = world.weights[:, positions], prior_of(world.prior, positions).mean()
    told = {
        "true_weights": (once, truth),
        "true_weights_repeats": (often, truth),
        "mean_weights": (once, np.broadcast_to(mean, (people, len(mean)))),
    }
    found: dict[str, object] = {"set": name, "share": share, "draw": draw, "people": people}
    for known, (planner, weights) in told.items():
        plans = planner.plan_many(world.states, weights)
        costs = [
            true_cost(world.problem, state, plan, own)
            for state, plan, own in zip(world.states, plans, world.weights, strict=True)
        ]
        found[known] = float(np.mean(costs))
    left = set(problem.costs.edges)
    gone = [
        f"{parent}->{child}"
        for parent, child in world.problem.costs.edges
        if (parent, child) not in left
    ]
    return found | {"removed": ", ".join(gone)}


def write_edges(path: Path, people: int) -> None:
    """Every set, share and draw, as CSV; of the whole graph there is one draw."""
    wanted = [
        (name, draw, share, people)
        for name in SETS
        for share in SHARES
        for draw in range(DRAWS if 0 < share < 1 else 1)
    ]
    found = [row for _, row in run_tasks(edges_removed, wanted, ordered=True)]
    table = pd.DataFrame(found)
    table.to_csv(path, index=False, float_format="%.2f")
    costs = ["true_weights", "true_weights_repeats", "mean_weights"]
    print(table.groupby(["set", "share"])[costs].describe().to_string())


def main() -> None:
    """Run the benchmark from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="write the figures as flat JSON")
    parser.add_argument("--quick", action="store_true", help="60 users of each set")
    parser.add_argument("--edges", type=Path, help="only what missing edges cost, as CSV")
    options = parser.parse_args()
    people = 60 if options.quick else 300
    if options.edges:
        write_edges(options.edges, people // 2)
        return
    results: dict[str, float] = {}
    answered, with_a_plan = [], []
    for name, (dataset, users) in SETS.items():
        started = time.process_time()
        rows = final(conversations(dataset, users, people))
        theirs = published_rows(dataset, "network", users, PEAR_L.published, k=K)
        theirs = theirs[theirs["user"] < people]
        both = paired(user_costs(rows), user_costs(theirs))
        answered.append(rows["answered"].mean())
        with_a_plan.append(rows.loc[rows["success"], "answered"].mean())
        of_runs = theirs[theirs["success"]].groupby("run")["cost"].mean()
        results[f"published_spread_of_runs.{name}"] = float(of_runs.std() / of_runs.mean())
        results[f"pear_wfare.{name}"] = float(user_costs(rows).mean())
        results[f"published.{name}"] = float(user_costs(theirs).mean())
        results[f"validity.{name}"] = float(rows["success"].mean())
        results[f"published_validity.{name}"] = float(theirs["success"].mean())
        if both is not None:
            results[f"ratio.{name}"] = both.ratio
            results[f"ratio_low.{name}"], results[f"ratio_high.{name}"] = both.low, both.high
            results[f"common.{name}"] = both.users
        results[f"seconds.{name}"] = time.process_time() - started
    results["answered.mean"] = float(sum(answered) / len(answered))
    results["answered.with_a_plan"] = float(sum(with_a_plan) / len(with_a_plan))
    curve = published_curve("adult", "pear_nl", 4)
    results["regret.published_rule_check"] = float(curve[QUESTIONS])
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n")
    print(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
