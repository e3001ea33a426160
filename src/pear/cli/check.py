"""``pear check``: is a problem file sound, and does it help the people in a table?"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from pear.decision import BlackBox
    from pear.problem import Problem
    from pear.problem.features import States

ROWS_PER_PERSON = 20_000
"""Rows of the model asked at most for each person of the sample."""


def command(
    problem_file: Annotated[Path, typer.Argument(metavar="PROBLEM", help="The problem.toml.")],
    data: Annotated[Path | None, typer.Option("--data", "-d", help="CSV or Parquet.")] = None,
    model: Annotated[
        str | None, typer.Option("--model", "-m", help="Model file or address, else the problem's.")
    ] = None,
    sample: Annotated[int, typer.Option(help="Refused people to look for plans for.")] = 50,
    seed: Annotated[int, typer.Option(help="Seed of the sample.")] = 0,
) -> None:
    """Check a problem.toml, show its actions in words, and try it on people."""
    from pear.errors import InvalidSetting
    from pear.problem.files import load_problem, model_location
    from pear.problem.review import describe_actions, odd_actions, unreviewed

    if sample < 1:
        raise InvalidSetting(f"'--sample' must be at least 1 (got {sample})")
    problem = load_problem(problem_file)
    typer.echo(
        f"{problem_file} is sound: {len(problem.space)} features, "
        f"{len(problem.actions.actions)} actions ({len(problem.actions)} steps), "
        f"{len(problem.costs.edges)} edges, plans of at most {problem.max_length} steps."
    )
    typer.echo(f"Fingerprint {problem.fingerprint}.")
    states = None if data is None else _people(problem, data)
    typer.echo("\nActions")
    for line in describe_actions(problem, states):
        typer.echo(f"  {line}")
    warnings = odd_actions(problem, states)
    typer.echo("\nWarnings" if warnings else "\nNo warnings.")
    for warning in warnings:
        typer.echo(f"  {warning}")
    waiting = unreviewed(problem)
    if waiting:
        typer.echo(
            f"\nNobody has reviewed {len(waiting)} of {len(problem.actions.actions)} actions yet: "
            f"{', '.join(waiting)}.\nSet 'reviewed = true' on those that someone who knows these "
            "people agrees to, and remove the others."
        )
    place = model or model_location(problem, problem_file)
    if states is None:
        typer.echo("\nWith --data, the people of a table are checked too.")
    elif place is None:
        typer.echo("\nWith --model, who is refused is counted too.")
    else:
        _decisions(problem, states, place, sample, seed)


def _people(problem: Problem, data: Path) -> States:
    from pear.problem.people import read_people

    people = read_people(data, problem.space)
    if people.bad:
        typer.echo(people.bad_words())
    return people.states


def _decisions(problem: Problem, states: States, place: str, sample: int, seed: int) -> None:
    import numpy as np

    from pear.decision.adapters import load_model

    black_box = load_model(place, problem)
    refused = np.flatnonzero(~black_box.favourable(states))
    share = len(refused) / len(states)
    typer.echo(f"\n{len(refused):,} of {len(states):,} people are refused ({share:.1%}).")
    if len(refused):
        rng = np.random.default_rng(seed)
        chosen = np.sort(rng.choice(refused, min(sample, len(refused)), replace=False))
        _plans(problem, black_box, states[chosen])


def _plans(problem: Problem, black_box: BlackBox, states: States) -> None:
    from pear.planning.exact import ExactPlanner

    planner = ExactPlanner(problem, black_box, max_rows=ROWS_PER_PERSON)
    plans = planner.plan_many(states, problem.weight_ranges.mean(axis=1))
    found = sum(plan.success for plan in plans)
    verdicts = Counter(plan.certificate.verdict for plan in plans if not plan.success)
    typer.echo(f"Of {len(plans)} refused people sampled, {found} have a plan.")
    if verdicts["infeasible"]:
        typer.echo(f"  {verdicts['infeasible']} have none, which is proven.")
    open_cases = len(plans) - found - verdicts["infeasible"]
    if open_cases:
        typer.echo(
            f"  {open_cases} are not decided within {ROWS_PER_PERSON:,} rows asked of the model."
        )
