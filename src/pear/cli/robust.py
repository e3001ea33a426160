"""``pear robust``: do plans last when the model changes?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pear.cli.options import Agree, Models, Trust

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pear.decision import BlackBox
    from pear.planning.robust import Rehearsal
    from pear.problem import Plan, Problem
    from pear.problem.features import States


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
    seed: Annotated[int, typer.Option(min=0, help="Seed of every random choice.")] = 0,
) -> None:
    """Say how many of the models that could decide tomorrow accept plans made today.

    Tomorrow's models are versions you kept, or today's trained again: on bootstraps of a table, or
    on windows of time. A folder of them is also a model to plan with: 'pear plan --model FOLDER
    --agree 0.95' finds plans that 95% of them accept.
    """
    import numpy as np

    from pear.decision import load_models
    from pear.errors import InvalidSetting
    from pear.planning.exact import ExactPlanner
    from pear.planning.robust import Rehearsal, Robustness
    from pear.portfolio.run import read_problem_and_model

    if not 0 < demand <= 1:
        raise InvalidSetting(f"'--demand' must be a share above 0, at most 1 (got {demand})")
    stated, place = read_problem_and_model(problem, model, agree=agree, trusted=trust or ())
    rng = np.random.default_rng(seed)
    if bool(version) == (data is not None):
        raise InvalidSetting(
            "give either '--version' (the models that could decide) or '--data' (people to train "
            "the model on again)"
        )
    if keep is not None and keep.exists() and not keep.is_dir():
        raise InvalidSetting(f"'{keep}' is no folder; name another place with '--keep'")
    today = place.load(stated)
    if version:
        models = load_models(version, stated, trusted=trust or ())
        rehearsals = [Rehearsal(ExactPlanner(stated, today), models)]
    else:
        assert data is not None
        past = _past(stated, data, label, time)
        models = past.again(today, retrain, rng)
        _keep(models, keep)
        rehearsals = past.rehearsals(today, stated, retrain, rng) if people is not None else []
    if plans is not None:
        typer.echo(Robustness.of(_read(plans), stated, models).words(demand))
    if people is not None:
        _margin(today, stated, people, rehearsals, demand, sample, rng)
    if plans is None and people is None and keep is None:
        raise InvalidSetting("nothing to do: give '--plans', '--people' or '--keep'")


@dataclass(frozen=True)
class _Past:
    """People of a table, their decisions, and their times where windows of time are cut."""

    states: States
    labels: list[Any]
    times: NDArray[Any] | None

    def again(self, today: BlackBox, count: int, rng: np.random.Generator) -> list[BlackBox]:
        """Today's model, trained again on bootstraps or windows of time."""
        from pear.decision.several_models import bootstraps, retrained, windows

        if self.times is not None:
            samples = windows(self.times, count)
        else:
            samples = bootstraps(len(self.states), count, rng)
        return retrained(today, self.states, self.labels, samples, rng)

    def rehearsals(
        self, today: BlackBox, problem: Problem, count: int, rng: np.random.Generator
    ) -> list[Rehearsal]:
        """Planners for models of one half of the people, and the models of the other that decide:
        the earlier and the later half where times are given."""
        import numpy as np

        from pear.decision.several_models import halves, retrained
        from pear.planning.exact import ExactPlanner
        from pear.planning.robust import Rehearsal

        if self.times is not None:
            order = np.argsort(self.times, kind="stable")
            samples = [order[: len(order) // 2], order[len(order) // 2 :]]
        else:
            samples = halves(len(self.states), max(1, count // 2), rng)
        models = retrained(today, self.states, self.labels, samples, rng)
        pairs = zip(models[::2], models[1::2], strict=True)
        if self.times is not None:
            return [Rehearsal(ExactPlanner(problem, a), [b]) for a, b in pairs]
        both = [(a, b) for pair in pairs for a, b in (pair, pair[::-1])]
        return [Rehearsal(ExactPlanner(problem, a), [b]) for a, b in both]


def _past(problem: Problem, data: Path, label: str | None, time: str | None) -> _Past:
    """The people of a table that today's model can be trained on again."""
    from pear.errors import InvalidData, InvalidSetting
    from pear.tables.people import read_people
    from pear.tables.reading import read_table

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
    return _Past(known.states, table[label].tolist(), table[time].to_numpy() if time else None)


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


def _read(path: Path) -> list[Plan]:
    """The plan of a file, or those of a table that have steps."""
    from pear.cli.verify import is_table, read_plan
    from pear.portfolio.plans import plans_of

    if not is_table(path):
        return [read_plan(path)]
    return [stored.plan for stored in plans_of(path) if stored.plan.steps]


def _margin(
    today: BlackBox,
    problem: Problem,
    people: Path,
    rehearsals: list[Rehearsal],
    demand: float,
    sample: int,
    rng: np.random.Generator,
) -> None:
    """Say which margin keeps plans valid, found with refused people of a table."""
    import numpy as np

    from pear.errors import InvalidData
    from pear.planning.robust import calibrated_margin
    from pear.tables.people import read_people

    states = read_people(people, problem.space).states
    refused = np.flatnonzero(~today.favourable(states))
    if not len(refused):
        raise InvalidData(f"nobody in '{people}' is refused; there is nothing to plan for")
    chosen = rng.choice(refused, min(sample, len(refused)), replace=False)
    weights = problem.weight_ranges.mean(axis=1)
    typer.echo(calibrated_margin(rehearsals, states[chosen], weights, demand).words())
