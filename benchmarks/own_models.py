"""Do plans hold for other people's tables and models, and are wrong set-ups told?

Three public tables that come with packages, eight kinds of model, the problem that ``pear init``
drafts. Every plan is checked once more by a program that knows nothing of this package: the raw
record with the plan's changes, in plain pandas, asked of the model itself. Then sixty set-ups that
are wrong, each of which must be refused or warned about; the right ones must not be.

    python benchmarks/own_models.py [--quick] [--json FILE]

``raw.failures`` counts plans whose last record the raw model does not accept, and people whose
decision today is another for it; ``raw.plans`` the records checked. ``ms_per_person`` is processor
time of planning, ``dice.ratio`` the median cost of DiCE's counterfactuals over ours.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from _own_tables import KINDS, TABLES, Owned, Record, Table, draft, stated
from _wrong_setups import RIGHT, WRONG, told
from pear.decision import BlackBox
from pear.planning.exact import ExactPlanner
from pear.problem import Plan, Problem

SEED = 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer people and rows")
    parser.add_argument("--json", type=Path, help="write flat names to numbers here")
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), help="only these kinds")
    arguments = parser.parse_args()
    n_people, max_rows = (8, 3_000) if arguments.quick else (60, 50_000)
    figures: dict[str, float] = {}
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        figures |= plans(arguments.kinds, n_people, max_rows)
        figures |= setups()
    for name, value in sorted(figures.items()):
        print(f"{name:32} {value:12.4g}")
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2, sort_keys=True) + "\n")


def plans(kinds: list[str], n_people: int, max_rows: int) -> dict[str, float]:
    """Plans for refused people of every table under every kind of model, checked outside."""
    proven: dict[str, list[bool]] = defaultdict(list)
    seconds: dict[str, float] = defaultdict(float)
    failures = checked = valid = 0
    ratios: list[float] = []
    for make in TABLES:
        table = make()
        for kind in kinds:
            owned = KINDS[kind](table)
            problem, black_box, states = posed(table, owned)
            decided = black_box.favourable(states)
            people = chosen(decided, n_people)
            planner = ExactPlanner(problem, black_box, max_rows=max_rows)
            usual = problem.weight_ranges.mean(axis=1)
            planner.plan_many(states[people[:1]], usual)  # What is compiled is not timed.
            began = time.process_time()
            made = planner.plan_many(states[people], usual)
            spent = time.process_time() - began
            seconds[kind] += spent
            proven[kind] += [plan.certificate.verdict in ("optimal", "infeasible") for plan in made]
            records = [raw_record(table, row) for row in people]
            wrong = raw_failures(owned, problem, records, made)
            failures, checked = failures + wrong, checked + len(made)
            valid += sum(plan.success and bool(plan.steps) for plan in made)
            print(
                f"{table.name:14} {kind:10} {len(made):4} people, "
                f"{sum(plan.success for plan in made):4} with a plan, "
                f"{np.mean(proven[kind][-len(made) :]):5.0%} proven, {wrong} fail outside, "
                f"{spent:.1f} s",
                flush=True,
            )
            if kind == "logistic" and table.name in ("breast_cancer", "marriages"):
                some = states[np.flatnonzero(~decided)[: 2 * n_people]]
                ratios += dice_ratios(problem, black_box, states, some)
    figures = {"raw.failures": failures, "raw.plans": checked, "raw.valid": valid}
    for kind in proven:
        figures[f"proven.share.{kind}"] = float(np.mean(proven[kind]))
        figures[f"ms_per_person.{kind}"] = 1e3 * seconds[kind] / len(proven[kind])
    figures["proven.share"] = float(np.mean([share for each in proven.values() for share in each]))
    if ratios:
        figures |= {"dice.ratio": float(np.median(ratios)), "dice.people": len(ratios)}
    return figures


def posed(table: Table, owned: Owned) -> tuple[Problem, BlackBox, Any]:
    """Problem, black box and everybody's states; the draft asks the model which way helps."""
    first = owned.problem(draft(table))
    problem = owned.problem(draft(table, owned.black_box(first).score))
    states = problem.states(table.frame)
    problem = stated(problem, owned.black_box(problem).score(states))
    return problem, owned.black_box(problem), states


def chosen(decided: Any, n: int) -> Any:
    """Refused people, and a tenth of approved ones, whose decision is checked as well."""
    rng = np.random.default_rng(SEED)
    refused, approved = np.flatnonzero(~decided), np.flatnonzero(decided)
    some = rng.choice(refused, min(n, len(refused)), replace=False)
    return np.concatenate([some, rng.choice(approved, min(n // 8 + 1, len(approved)), False)])


def raw_record(table: Table, row: int) -> Record:
    """A row of the table as its owner has it."""
    return {
        name: None if value is None or value != value else value
        for name, value in table.frame.iloc[row].items()
    }


def raw_failures(owned: Owned, problem: Problem, records: list[Record], made: list[Plan]) -> int:
    """Plans that do not hold when the raw model scores the raw record with their changes."""
    threshold, wrong = problem.goal.threshold, 0
    for record, plan in zip(records, made, strict=True):
        approved_today = plan.success and not plan.steps
        wrong += (owned.raw(record) > threshold) != approved_today
        if plan.success and plan.steps:
            changed = record | {step.feature: step.after for step in plan.steps}
            wrong += not owned.raw(changed) > threshold
    return wrong


def dice_ratios(problem: Problem, black_box: BlackBox, everybody: Any, people: Any) -> list[float]:
    """Cost of DiCE's counterfactual over that of our plan, where both have one.

    Its changes are paid for as they are, also those that no action of the problem allows.
    """

    from _peers import dice_targets

    weights = problem.weight_ranges.mean(axis=1)
    made = ExactPlanner(problem, black_box, max_rows=20_000).plan_many(people, weights)
    ratios = []
    targets = dice_targets(problem, black_box, everybody[:2_000], people, "random", SEED)
    for start, target, plan in zip(people, targets, made, strict=True):
        if target is None or not plan.steps or not black_box.favourable(target[None])[0]:
            continue
        order = np.flatnonzero(target != start).tolist()
        paid = float(problem.costs.change_costs(start, target, order, weights).sum())
        ratios.append(paid / plan.cost)
    return ratios


def setups() -> dict[str, float]:
    """How many wrong set-ups say nothing, and how many right ones complain."""
    silent = noisy = 0
    for name, make in WRONG.items():
        said = told(make)
        silent += not said
        print(f"  {'SILENT ' if not said else 'told   '} {name}: {said[:150]}", flush=True)
    for name, make in RIGHT.items():
        said = told(make)
        noisy += bool(said)
        print(f"  {'NOISY  ' if said else 'quiet  '} {name}: {said[:150]}", flush=True)
    return {
        "wrong.setups": len(WRONG),
        "wrong.silent": silent,
        "right.setups": len(RIGHT),
        "right.warned": noisy,
    }


if __name__ == "__main__":
    main()
