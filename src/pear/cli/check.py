"""``pear check``: is a problem file sound, and does it help the people in a table?"""

from __future__ import annotations

import warnings
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pear.cli.options import Trust

if TYPE_CHECKING:
    from pear.decision import BlackBox
    from pear.problem import Problem
    from pear.problem.features import States
    from pear.tables.people import People

ROWS_PER_PERSON = 20_000
"""Rows of the model asked at most for each person of the sample."""


def command(
    problem_file: Annotated[Path, typer.Argument(metavar="PROBLEM", help="The problem.toml.")],
    data: Annotated[Path | None, typer.Option("--data", "-d", help="CSV or Parquet.")] = None,
    model: Annotated[
        str | None, typer.Option("--model", "-m", help="Model file or address, else the problem's.")
    ] = None,
    target: Annotated[
        str | None,
        typer.Option("--target", "-t", help="Column with the decisions taken, else the goal's."),
    ] = None,
    trust: Trust = None,
    sample: Annotated[int, typer.Option(help="Refused people to look for plans for.")] = 50,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the sample.")] = 0,
) -> None:
    """Check a problem.toml, show its actions in words, and try it on people."""
    from pear.decision import load_model
    from pear.decision.table_checks import raw_cells_doubt
    from pear.decision.used_features import wrongly_unused
    from pear.errors import InvalidSetting, ModelWarning
    from pear.problem.files import load_problem, model_location
    from pear.problem.review import describe_actions, doubts_about, unreviewed
    from pear.tables.people import ROWS_AT_A_TIME
    from pear.tables.reading import open_table

    if sample < 1:
        raise InvalidSetting(f"'--sample' must be at least 1 (got {sample})")
    problem = load_problem(problem_file)
    typer.echo(
        f"{problem_file} is sound: {len(problem.space)} features, "
        f"{len(problem.actions.actions)} actions ({len(problem.actions)} steps), "
        f"{len(problem.costs.edges)} edges, plans of at most {problem.max_length} steps."
    )
    typer.echo(f"Fingerprint {problem.fingerprint}.")
    people = None if data is None else _people(problem, data)
    states = None if people is None else people.states
    typer.echo("\nActions")
    for line in describe_actions(problem, states):
        typer.echo(f"  {line}")
    place = model or model_location(problem, problem_file)
    black_box = None
    if place is not None and states is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ModelWarning)  # They stand below.
            black_box = load_model(place, problem, trusted=trust or ())
    found = doubts_about(problem, states)
    if black_box is not None:
        found += [*black_box.doubts, *wrongly_unused(problem, black_box)]
    if black_box is not None and people is not None and data is not None:
        cells = next(open_table(data).chunks(ROWS_AT_A_TIME)).frame
        found += [doubt] if (doubt := raw_cells_doubt(black_box, cells, people)) else []
    typer.echo("\nWarnings" if found else "\nNo warnings.")
    for warning in found:
        typer.echo(f"  {warning}")
    waiting = unreviewed(problem)
    if waiting:
        typer.echo(
            f"\nNobody has reviewed {len(waiting)} of {len(problem.actions.actions)} actions yet: "
            f"{', '.join(waiting)}.\nSet 'reviewed = true' on those that someone who knows these "
            "people agrees to, and remove the others."
        )
    if people is None or data is None:
        typer.echo("\nWith --data, the people of a table are checked too.")
    elif black_box is None:
        typer.echo("\nWith --model, who is refused is counted too.")
    else:
        _decisions(problem, people.states, black_box, sample, seed)
        _beside_labels(black_box, people, data, target or problem.goal.target)


def _people(problem: Problem, data: Path) -> People:
    from pear.tables.people import read_people

    people = read_people(data, problem.space)
    if people.bad:
        typer.echo(people.bad_words())
    return people


def _beside_labels(black_box: BlackBox, people: People, data: Path, target: str) -> None:
    """Whether the model's scores agree with the decisions in the table; a warning where not."""
    from pear.decision.table_checks import compare_with_labels
    from pear.tables.people import labels_of

    labels = labels_of(data, target, people.rows) if target else None
    if labels is None:
        lacks = f"the table has no column '{target}'" if target else "nothing names their column"
        typer.echo(
            f"\nScores were not compared with the decisions taken: {lacks}; name it with --target, "
            "or as 'target' of the goal."
        )
        return
    compared = compare_with_labels(black_box, people.states, labels, target)
    if isinstance(compared, str):
        typer.echo(f"\nWARNING: {compared}.")
        return
    typer.echo(f"\n{compared.words()}")
    for doubt in compared.doubts():
        typer.echo(f"WARNING: {doubt}.")


def _decisions(
    problem: Problem, states: States, black_box: BlackBox, sample: int, seed: int
) -> None:
    import numpy as np

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
