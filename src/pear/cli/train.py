"""``pear train``: train a policy for a problem and its model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from pear.cli.options import Agree, Models, Trust

RATES = {"adult": 0.001, "givemecredit": 0.003}
"""The paper's learning rates; 0.001 for any other problem."""
SIMULATIONS = {"adult": 15, "givemecredit": 10}
"""The paper's simulations per step in training; 15 for any other problem."""


def command(
    problem: Annotated[Path, typer.Argument(help="The problem file.")],
    data: Annotated[Path, typer.Option("--data", "-d", help="People to train on: CSV or Parquet.")],
    planner: Annotated[str, typer.Option(help="wfare, fare or rl.")] = "wfare",
    model: Models = None,
    agree: Agree = 1.0,
    trust: Trust = None,
    prior: Annotated[Path | None, typer.Option(help="Prior (JSON); else the problem's.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Policy file; else PLANNER.safetensors.")
    ] = None,
    iterations: Annotated[int, typer.Option(help="Most iterations.")] = 400,
    people: Annotated[int, typer.Option(help="People searched for in one iteration.")] = 128,
    simulations: Annotated[
        int | None, typer.Option(help="Simulations per step in training; else the paper's.")
    ] = None,
    learning_rate: Annotated[float | None, typer.Option(help="Adam's; else the paper's.")] = None,
    patience: Annotated[
        int, typer.Option(help="Validations without a better policy before it ends.")
    ] = 6,
    validate_every: Annotated[
        int, typer.Option(help="Iterations between validations, each followed by a checkpoint.")
    ] = 20,
    seed: Annotated[int, typer.Option(help="The same seed gives the same policy.")] = 0,
    workers: Annotated[int | None, typer.Option(help="Processes; all cores by default.")] = None,
    restart: Annotated[
        bool, typer.Option("--restart", help="Discard the checkpoint of an unfinished run.")
    ] = False,
) -> None:
    """Train a policy for W-FARE, FARE or RL.

    Training that was interrupted goes on from its last checkpoint when it is started again.
    Beside the policy a table of the training curves is written (.csv).
    """
    from pear.errors import InvalidSetting
    from pear.optional import require
    from pear.parallel import core_count
    from pear.portfolio.beliefs import read_prior
    from pear.portfolio.run import read_problem_and_model
    from pear.tables.people import read_people
    from pear.writing import check_writable

    if planner not in ("wfare", "fare", "rl"):
        raise InvalidSetting(f"'--planner' must be wfare, fare or rl (got {planner!r})")
    output = output or Path(f"{planner}.safetensors")
    check_writable(output)
    require("torch").set_num_threads(1)
    from pear.planning.learned.training import Trainer, TrainingSettings

    stated, place = read_problem_and_model(problem, model, agree=agree, trusted=trust or ())
    believed = read_prior(stated, problem, prior)
    everybody = read_people(data, stated.space)
    states = everybody.states
    if everybody.bad:
        typer.echo(everybody.bad_words())
    kind: Any = planner
    settings = TrainingSettings(
        kind=kind,
        iterations=iterations,
        batch_people=people,
        simulations=SIMULATIONS.get(stated.name, 15) if simulations is None else simulations,
        learning_rate=RATES.get(stated.name, 0.001) if learning_rate is None else learning_rate,
        patience=patience,
        validate_every=validate_every,
        seed=seed,
    )
    trainer = Trainer(
        stated,
        place.load(stated),
        states,
        lambda n, rng: believed.sample(n, rng)[0],
        believed.mean(),
        settings,
        workers=workers or core_count(),
    )
    _train(trainer, output, restart)


def _train(trainer: Any, output: Path, restart: bool) -> None:
    from pear.cli.main import Bar
    from pear.planning.learned.training import load_checkpoint, save_checkpoint, write_curves

    unfinished = output.with_name(output.name + ".checkpoint")
    if restart:
        unfinished.unlink(missing_ok=True)
    if unfinished.exists():
        load_checkpoint(trainer, unfinished)
        typer.echo(f"Going on after iteration {trainer.iteration} of '{unfinished}'.")
    try:
        with Bar("training", trainer.settings.iterations, trainer.iteration) as bar:

            def report(line: Any) -> None:
                note = (
                    f"success {line.validation_success:.1%}  cost {line.validation_cost:.1f}  "
                    f"loss {line.loss:.3f} (validation {line.validation_loss:.3f})"
                )
                bar.show(line.iteration, trainer.settings.iterations, note)

            policy = trainer.run(report, lambda now: save_checkpoint(now, unfinished))
    except KeyboardInterrupt:
        if unfinished.exists():
            typer.echo(f"Stopped. The same command goes on from '{unfinished}'.", err=True)
        else:
            typer.echo("Stopped before the first checkpoint; nothing is kept.", err=True)
        raise
    policy.save(output)
    write_curves(trainer.history, output.with_suffix(".csv"))
    unfinished.unlink(missing_ok=True)
    judged = [line for line in trainer.history if line.best][-1]
    speed = trainer.iteration / trainer.seconds
    typer.echo(
        f"{output}: success {judged.validation_success:.1%}, mean cost "
        f"{judged.validation_cost:.1f} on held-out people after iteration {judged.iteration} of "
        f"{trainer.iteration} ({trainer.seconds:.0f} s, {speed:.1f} iterations a second, "
        f"{speed * trainer.settings.batch_people:.0f} people a second)."
    )
