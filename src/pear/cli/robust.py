"""``pear robust``: do plans last when the model changes?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pear.cli.files import Agree, Models, Trust

if TYPE_CHECKING:
    import numpy as np

    from pear.decision import BlackBox
    from pear.problem import Plan, Problem


def command(
    problem: Annotated[Path, typer.Argument(help="The problem file.")],
    model: Models = None,
    agree: Agree = 1.0,
    trust: Trust = None,
    plans: Annotated[
        Path | None, typer.Option(help="A plan as JSON, or what 'pear plan' wrote.")
    ] = None,
    version: Annotated[
        list[str] | None, typer.Option(help="A version of the model, or a folder of them.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option("--data", "-d", help="People to train the model on again.")
    ] = None,
    label: Annotated[str | None, typer.Option(help="The column with their decisions.")] = None,
    retrain: Annotated[int, typer.Option(min=1, help="How many times to train again.")] = 20,
    time: Annotated[
        str | None, typer.Option(help="Column to cut windows of time by, in place of bootstraps.")
    ] = None,
    keep: Annotated[
        Path | None, typer.Option(help="Folder for the models trained, for 'pear plan --model'.")
    ] = None,
    demand: Annotated[
        float, typer.Option(help="Share of the models that should accept a plan.")
    ] = 0.95,
    people: Annotated[
        Path | None, typer.Option(help="People to find the margin with that keeps plans valid.")
    ] = None,
    sample: Annotated[int, typer.Option(min=1, help="Refused people of these to plan for.")] = 100,
    seed: Annotated[int, typer.Option(help="Seed of every random choice.")] = 0,
) -> None:
    """Say how many of the models that could decide tomorrow accept plans made today.

    Tomorrow's models are versions you kept, or today's trained again: on bootstraps of a table, or
    on windows of time. A folder of them is also a model to plan with: 'pear plan --model FOLDER
    --agree 0.95' finds plans that 95% of them accept.
    """
    import numpy as np

    from pear.decision import load_models
    from pear.errors import InvalidSetting
    from pear.planning.robust import Robustness
    from pear.portfolio.run import read_problem_and_model

    stated, place = read_problem_and_model(problem, model, agree=agree, trusted=trust or ())
    rng = np.random.default_rng(seed)
    if bool(version) == (data is not None):
        raise InvalidSetting(
            "give either '--version' (the models that could decide) or '--data' (people to train "
            "the model on again)"
        )
    today = place.load(stated)
    if version:
        models = load_models(version, stated, trusted=trust or ())
    else:
        assert data is not None
        models = _retrained(today, stated, data, label, retrain, time, rng)
        _keep(models, keep)
    if plans is not None:
        typer.echo(Robustness.of(_read(plans, stated), stated, models).words(demand))
    if people is not None:
        _margin(today, stated, people, models, demand, sample, rng)
    if plans is None and people is None and keep is None:
        raise InvalidSetting("nothing to do: give '--plans', '--people' or '--keep'")


def _retrained(
    today: BlackBox,
    problem: Problem,
    data: Path,
    label: str | None,
    count: int,
    time: str | None,
    rng: np.random.Generator,
) -> list[BlackBox]:
    """Today's model, trained again on the people of a table."""
    from pear.decision.family import bootstraps, retrained, windows
    from pear.errors import InvalidData, InvalidSetting
    from pear.problem.people import read_people
    from pear.problem.tables import read_table

    if label is None:
        raise InvalidSetting("'--label' is missing: name the column of '--data' with the decisions")
    table, _ = read_table(data)
    for column in (label, *([time] if time else [])):
        if column not in table.columns:
            raise InvalidData(
                f"'{data}' has no column '{column}'; it has {', '.join(map(str, table.columns))}"
            )
    known = read_people(data, problem.space)
    if known.bad:
        typer.echo(known.bad_words())
    table = table.loc[known.rows]
    if time:
        samples = windows(table[time].to_numpy(), count)
    else:
        samples = bootstraps(len(known), count, rng)
    return retrained(today, known.states, table[label].tolist(), samples, rng)


def _keep(models: list[BlackBox], folder: Path | None) -> None:
    """Write trained models into a folder, to plan with."""
    from pear.decision import save_sklearn
    from pear.decision.adapters.sklearn import SklearnScores

    if folder is None:
        return
    folder.mkdir(parents=True, exist_ok=True)
    width = len(str(len(models)))
    for number, model in enumerate(models, 1):
        assert isinstance(model.function, SklearnScores)
        save_sklearn(model.function.model, folder / f"{number:0{width}}.skops")
    typer.echo(f"{len(models)} models are in {folder}.")


def _read(path: Path, problem: Problem) -> list[Plan]:
    """The plan of a file, or those of a table that have steps."""
    from pear.cli.verify import is_table, read_plan
    from pear.portfolio.plans import plans_of

    if not is_table(path):
        return [read_plan(path)]
    return [stored.plan for stored in plans_of(path, problem) if stored.plan.steps]


def _margin(
    today: BlackBox,
    problem: Problem,
    people: Path,
    models: list[BlackBox],
    demand: float,
    sample: int,
    rng: np.random.Generator,
) -> None:
    """Say which margin keeps plans valid, found with refused people of a table."""
    import numpy as np

    from pear.errors import InvalidData
    from pear.planning.exact import ExactPlanner
    from pear.planning.robust import calibrated_margin
    from pear.problem.people import read_people

    states = read_people(people, problem.space).states
    refused = np.flatnonzero(~today.favourable(states))
    if not len(refused):
        raise InvalidData(f"nobody in '{people}' is refused; there is nothing to plan for")
    chosen = rng.choice(refused, min(sample, len(refused)), replace=False)
    weights = problem.weight_ranges.mean(axis=1)
    planner = ExactPlanner(problem, today)
    typer.echo(calibrated_margin(planner, states[chosen], weights, models, demand).words())
