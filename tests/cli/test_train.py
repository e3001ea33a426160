"""``pear train`` from a table to a policy file, interrupted and gone on with."""

from importlib.util import find_spec

import numpy as np
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from typer.testing import CliRunner

from pear.cli.main import app
from pear.datasets import loan_book_problem, loan_book_table
from pear.decision import save_sklearn
from pear.errors import InvalidSetting
from pear.problem.files import load_problem, write_problem

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="needs the extra 'learned'")

SMALL = ["--iterations", 4, "--validate-every", 2, "--people", 16, "--simulations", 3]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("loans")
    problem, table = loan_book_problem(), loan_book_table(300, 0)
    table.to_csv(place / "loans.csv", index=False)
    write_problem(problem, place / "loans.toml")
    named = [f.name for f in problem.space.features if f.is_categorical]
    columns = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), named), remainder=StandardScaler()
    )
    model = make_pipeline(columns, LogisticRegression())
    model.fit(table[list(problem.space.names)], table["approved"])
    save_sklearn(model, place / "model.skops")
    return place


def train(folder, *more):
    arguments = ["train", folder / "loans.toml", "--data", folder / "loans.csv"]
    arguments += ["--model", folder / "model.skops", "--workers", 1, *SMALL, *more]
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.mark.slow
def test_training_writes_a_policy_and_its_curves(folder):
    from pear.planning.learned import Policy

    told = train(folder, "--planner", "fare", "-o", folder / "fare.safetensors")
    assert told.exit_code == 0
    assert "on held-out people after iteration" in told.output
    policy = Policy.load(folder / "fare.safetensors", load_problem(folder / "loans.toml"))
    assert policy.kind == "fare"
    assert policy.settings["iterations_done"] == 4
    lines = (folder / "fare.csv").read_text().splitlines()
    assert len(lines) == 5
    assert lines[0].startswith("iteration,seconds,loss,")
    assert not (folder / "fare.safetensors.checkpoint").exists()


@pytest.mark.slow
def test_interrupted_training_loses_at_most_one_interval(folder, monkeypatch):
    from pear.planning.learned import Policy
    from pear.planning.learned.training import Trainer

    step = Trainer.step

    def interrupted(self):
        if self.iteration == 3:
            raise KeyboardInterrupt
        return step(self)

    monkeypatch.setattr(Trainer, "step", interrupted)
    stopped = train(folder, "-o", folder / "cut.safetensors")
    assert stopped.exit_code != 0
    assert "The same command goes on from" in stopped.output
    monkeypatch.setattr(Trainer, "step", step)
    told = train(folder, "-o", folder / "cut.safetensors")
    assert "Going on after iteration 2" in told.output
    train(folder, "-o", folder / "whole.safetensors")
    problem = load_problem(folder / "loans.toml")
    cut = Policy.load(folder / "cut.safetensors", problem).agent.state_dict()
    whole = Policy.load(folder / "whole.safetensors", problem).agent.state_dict()
    assert all(np.array_equal(cut[name], whole[name]) for name in whole)


def test_an_unknown_planner_is_refused(folder):
    with pytest.raises(InvalidSetting, match="wfare, fare or rl \\(got 'exact'\\)"):
        train(folder, "--planner", "exact")
