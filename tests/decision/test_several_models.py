"""Several models as one: who must say yes, what it is known by, and plans that hold for all."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from typer.testing import CliRunner

from pear.cli.main import app
from pear.decision import from_callable, load_model, save_sklearn, several
from pear.errors import InvalidSetting, ModelError
from pear.planning.exact import ExactPlanner
from pear.planning.verify import verify
from pear.problem import Action, Feature, Problem
from pear.problem.files import write_problem


def share_of(most, problem):
    """Says yes above half of ``most``."""
    return from_callable(lambda states: np.clip(states[:, 0] / most, 0, 1), problem, f"{most}")


@pytest.fixture
def ladder():
    """Income from 0 to 200 in tens."""
    steps = tuple(float(step) for step in range(10, 201, 10))
    return Problem([Feature("income")], [Action("earn", "income", "add", steps)])


def test_the_score_is_the_one_that_enough_models_reach(ladder):
    models = [share_of(most, ladder) for most in (50, 100, 200)]
    people = np.array([[40.0], [60.0], [110.0]])
    for agree, required in ((1.0, 3), (0.67, 3), (0.6, 2), (0.3, 1)):
        yes = np.sum([model.favourable(people) for model in models], axis=0)
        assert (several(models, agree).favourable(people) == (yes >= required)).all()


def test_a_share_is_a_decimal(ladder):
    # 0.9 * 10 is 9.000000000000002 in floating point: nine models, not ten.
    assert several([share_of(50, ladder)] * 10, 0.9).fingerprint.startswith("9/10:")


def test_the_fingerprint_names_the_models_in_any_order(ladder):
    one, two, three = (share_of(most, ladder) for most in (50, 100, 200))
    both = several([one, two]).fingerprint
    assert one.fingerprint[:8] in both
    assert two.fingerprint[:8] in both
    assert both == several([two, one]).fingerprint
    assert len({both, several([one, two], 0.5).fingerprint, several([one, three]).fingerprint}) == 3
    assert len(several([one, two, three] * 20).fingerprint) <= 64


def test_a_plan_holds_for_every_model_and_says_which(ladder):
    models = [share_of(most, ladder) for most in (50, 100, 200)]
    start, weights = np.zeros(1), np.ones(1)
    together = several(models)
    plan = ExactPlanner(ladder, together).plan(start, weights)
    end = np.array([[plan.steps[-1].after]])
    assert all(model.favourable(end)[0] for model in models)
    dearest = max(ExactPlanner(ladder, model).plan(start, weights).cost for model in models)
    assert plan.cost == dearest
    assert verify(plan, ladder, together).confirmed
    assert not verify(plan, ladder, models[0]).confirmed


def test_models_about_other_features_are_refused(ladder):
    other = Problem([Feature("savings")], [Action("save", "savings", "add", (1.0,))])
    with pytest.raises(InvalidSetting, match="same problem"):
        several([share_of(50, ladder), share_of(50, other)])


@pytest.mark.parametrize("agree", [0, 1.1, float("nan"), True, "all"])
def test_a_share_that_is_none_is_refused(ladder, agree):
    with pytest.raises(InvalidSetting, match="'agree'"):
        several([share_of(50, ladder)], agree)
    with pytest.raises(InvalidSetting, match="'agree'"):
        load_model(lambda states: states[:, 0], ladder, agree=agree)


def test_no_models_are_refused():
    with pytest.raises(InvalidSetting, match="at least one"):
        several([])


@pytest.fixture
def family(ladder, tmp_path):
    """A problem and two models in files, and a person."""
    write_problem(ladder, tmp_path / "problem.toml")
    (tmp_path / "models").mkdir()
    incomes = np.arange(0.0, 200.0, 5.0)[:, None]
    for place, most in enumerate((60, 120)):
        model = LogisticRegression(C=1e3).fit(incomes, incomes[:, 0] > most)
        save_sklearn(model, tmp_path / "models" / f"{place}.skops")
    (tmp_path / "people.csv").write_text("id,income\nAda,0\n")
    return tmp_path


def test_files_are_read_one_by_one_or_as_a_folder(family, ladder):
    folder = family / "models"
    listed = load_model([folder / "0.skops", folder / "1.skops"], ladder)
    assert listed.fingerprint == load_model(folder, ladder).fingerprint
    assert load_model([folder / "0.skops"], ladder).name == "0.skops"
    assert load_model(folder, ladder, agree=0.5).name == "1 of 2 models"
    with pytest.raises(ModelError, match="holds no"):
        load_model(family, ladder)


def test_plans_of_a_table_hold_for_all_models_named(family):
    import pandas as pd

    costs = []
    for models in (["0"], ["1"], ["0", "1"]):
        named = [part for one in models for part in ("--model", f"{family}/models/{one}.skops")]
        output = family / f"{''.join(models)}.csv"
        run = CliRunner().invoke(
            app, ["plan", f"{family}/problem.toml", f"{family}/people.csv", "-o", str(output),
                  *named, "--workers", "1"],
        )  # fmt: skip
        assert run.exit_code == 0, run.output
        costs.append(pd.read_csv(output)["cost"][0])
    assert costs[2] == max(costs[:2]) > min(costs[:2])
