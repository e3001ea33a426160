"""Where a run writes: nothing of anybody else is replaced, and a full disk is an error in words."""

import errno
import shutil

import pandas as pd
import pytest

from pear.decision import save_sklearn
from pear.errors import InvalidSetting
from pear.portfolio import Everyone, ModelPlace, Search, plan_portfolio
from pear.portfolio import ledger as portfolio_ledger
from tests.portfolio.small_problem import PROBLEM, WEIGHTS, black_box, people, write


def plan(source, output, *, model=None, weights=None, **settings):
    given = weights or Everyone(WEIGHTS)
    return plan_portfolio(
        PROBLEM,
        model or black_box(),
        source,
        output,
        given,
        workers=1,
        search=Search(together=16),
        **settings,
    )


@pytest.fixture
def table(tmp_path):
    return write(people(), tmp_path / "people.csv")


def test_the_people_are_never_replaced_by_their_plans(tmp_path, table):
    before = table.read_bytes()
    with pytest.raises(InvalidSetting, match="same place"):
        plan(table, table, restart=True)
    folder = tmp_path / "folder"
    folder.mkdir()
    shutil.copy(table, folder)
    for output in (folder, folder / "plans.parquet", tmp_path / "folder" / ".." / "folder"):
        with pytest.raises(InvalidSetting, match="inside the other"):
            plan(folder, output, restart=True)
    with pytest.raises(InvalidSetting, match="inside the other"):
        plan(folder / "people.csv", folder, restart=True)
    own = write(pd.DataFrame([WEIGHTS] * 60, columns=PROBLEM.weight_names), tmp_path / "w.csv")
    with pytest.raises(InvalidSetting, match=r"table '.*w\.csv'"):
        plan(table, own, weights=own, restart=True)
    assert table.read_bytes() == before
    assert sorted(entry.name for entry in folder.iterdir()) == ["people.csv"]


def test_a_folder_with_other_things_is_never_removed(tmp_path, table):
    for name in ("plans", "other.parts", "file.parquet"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "precious.txt").touch()
    for output, message in (("plans", "precious"), ("other.csv", "precious"),
                            ("file.parquet", "is a folder")):  # fmt: skip
        with pytest.raises(InvalidSetting, match=message):
            plan(table, tmp_path / output, restart=True)
    assert len(list(tmp_path.glob("*/precious.txt"))) == 3
    with pytest.raises(InvalidSetting, match="name of its own"):
        plan(table, "..")


def test_a_folder_of_plans_is_replaced_when_asked(tmp_path, table):
    plan(table, tmp_path / "plans")
    with pytest.raises(InvalidSetting, match="exists already"):
        plan(table, tmp_path / "plans")
    plan(table, tmp_path / "plans", weights=Everyone(WEIGHTS * 2), restart=True)
    assert "60" in pd.read_parquet(tmp_path / "plans")["weights"][0]


@pytest.mark.parametrize(("calls", "kept"), [(0, 0), (2, 0), (5, 12), (9, 44)])
def test_a_full_disk_is_told_and_the_next_run_goes_on(tmp_path, table, monkeypatch, calls, kept):
    original, left = portfolio_ledger.os.fsync, [calls]

    def full(descriptor):
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        original(descriptor)

    monkeypatch.setattr(portfolio_ledger.os, "fsync", full)
    with pytest.raises(InvalidSetting, match=r"No space left.*what is done is kept"):
        plan(table, tmp_path / "plans.csv")
    monkeypatch.undo()
    assert plan(table, tmp_path / "plans.csv").resumed == kept
    plan(table, tmp_path / "whole.csv")
    assert (tmp_path / "plans.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()


def test_a_run_never_goes_on_with_a_model_changed_by_little(tmp_path, table):
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    frame = people().drop(columns="id")
    columns = make_column_transformer(("passthrough", ["income", "savings"]))
    model = make_pipeline(columns, LogisticRegression()).fit(frame, frame["income"] > 35)
    place = ModelPlace(str(tmp_path / "model.skops"))
    save_sklearn(model, tmp_path / "model.skops")
    fingerprint = place.load(PROBLEM).fingerprint
    with pytest.raises(ZeroDivisionError):
        plan(table, tmp_path / "plans.csv", model=place, progress=lambda p: 1 / (p.done == 0))
    model[-1].intercept_ += 1e-7
    save_sklearn(model, tmp_path / "model.skops")
    assert place.load(PROBLEM).fingerprint == fingerprint
    with pytest.raises(InvalidSetting, match="differs in model"):
        plan(table, tmp_path / "plans.csv", model=place)
