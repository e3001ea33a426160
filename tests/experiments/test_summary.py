"""Aggregation: the paper's way, the honest interval, users that all methods solve."""

import numpy as np
import pandas as pd
import pytest

from pear.experiments import corruption
from pear.experiments.published import published_cell, published_figures
from pear.experiments.regret import curve, regrets
from pear.experiments.render import Table, escaped
from pear.experiments.summary import bootstrap_interval, solved_by_all, summed_up
from pear.experiments.tables import difference_table, result_tables


def rows(*cells: tuple[str, int, int, float]) -> pd.DataFrame:
    """(method, run, user, cost); a cost of NaN is a failure."""
    table = pd.DataFrame(cells, columns=["method", "run", "user", "cost"])
    return table.assign(
        success=table["cost"].notna(),
        length=table["cost"] * 0 + 2,
        questions=0,
        k=0,
        corruption=0.0,
        dataset="adult",
        classifier="network",
        users="all",
        score=0.2,
        rows=1.0,
        cost_for_mean=np.nan,
        cost_for_truth=np.nan,
    )


NONE = float("nan")


def test_users_count_once_however_many_of_their_runs_succeed():
    table = rows(("m", 0, 0, 10.0), ("m", 1, 0, 30.0), ("m", 0, 1, 100.0), ("m", 1, 1, NONE))
    cost = summed_up(table, "cost")
    assert cost.mean == 60.0  # (20 + 100) / 2, not the mean of the three successes
    assert cost.spread == 5.0  # user 0 spreads by 10, user 1 by 0
    assert cost.users == 2
    validity = summed_up(table, "validity")
    assert (validity.mean, validity.spread) == (0.75, 0.25)
    assert summed_up(table, "cost", shift=1.0).mean == 61.0


def test_a_method_that_never_succeeds_has_no_cost():
    assert np.isnan(summed_up(rows(("m", 0, 0, NONE)), "cost").mean)


def test_the_interval_covers_the_mean_about_as_often_as_it_says():
    rng = np.random.default_rng(3)
    hits = 0
    for _ in range(200):
        low, high = bootstrap_interval(rng.exponential(size=60), resamples=400)
        hits += low <= 1.0 <= high
    assert 0.87 <= hits / 200 <= 0.99


def test_users_solved_by_all_leave_out_hopeless_methods_and_say_so():
    table = rows(
        *(("good", 0, user, 5.0) for user in range(10)),
        *(("fair", 0, user, 5.0 if user < 6 else NONE) for user in range(10)),
        *(("poor", 0, user, 5.0 if user == 9 else NONE) for user in range(10)),
    )
    common = solved_by_all(dict(iter(table.groupby("method"))))
    assert common.users == set(range(6))
    assert common.strictly == set()
    assert common.left_out == ("poor",)


def test_low_validity_does_not_flatter_the_shared_cost():
    easy, hard = 10.0, 100.0
    table = rows(
        ("exact-mean", 0, 0, easy),
        ("exact-mean", 0, 1, hard),
        ("mcts", 0, 0, easy + 5),
        ("mcts", 0, 1, NONE),
    )
    [found], _ = result_tables("t", "T", "eval-results", table)
    cells = {row[0]: row for row in found.rows}
    cost, shared = found.columns.index("Cost"), found.columns.index("Cost, users all solve")
    assert cells["MCTS"][cost].startswith("16.0")
    assert cells["Exact, prior mean"][cost].startswith("56.0")
    assert (cells["MCTS"][shared], cells["Exact, prior mean"][shared]) == ("16.0", "11.0")


def test_under_corruption_every_line_decides_who_is_solved_by_all():
    whole = rows(("pear-exact-l", 0, 0, 10.0), ("pear-exact-l", 0, 1, 50.0))
    half = rows(("pear-exact-l", 0, 0, 20.0), ("pear-exact-l", 0, 1, NONE))
    table = pd.concat([whole, half.assign(corruption=0.5)], ignore_index=True)
    [found], _ = result_tables("t", "T", "error-causal", table, "Corruption", corruption.lines)
    shared = found.columns.index("Cost, users all solve")
    cells = {row[0]: row[shared] for row in found.rows}
    assert cells == {"PEAR (exact), L: none": "11.0", "PEAR (exact), L: 0.5": "21.0"}
    assert "Of 2 users, 1 is solved by every line here in some run." in found.notes


def test_cells_beyond_the_papers_spread_are_listed_with_the_reason():
    paper, spread = published_cell("eval-results", "network", "adult", "all", "MCTS", "cost")
    near = rows(("mcts", 0, 0, paper - 1 + 0.9 * spread))
    far = rows(("mcts", 0, 0, paper - 1 + 1.1 * spread))
    assert "cost" not in {d.measure for d in result_tables("t", "T", "eval-results", near)[1]}
    [found] = [d for d in result_tables("t", "T", "eval-results", far)[1] if d.measure == "cost"]
    assert found.paper == paper
    assert "`mcts-noise`" in found.why


def test_differences_stand_together_and_each_cause_once():
    [paper, spread] = published_cell("eval-results", "network", "adult", "all", "MCTS", "cost")
    far = [paper - 1 + shift * spread for shift in (-3.0, 5.5)]  # their interval holds the mean
    known = rows(*(("mcts", 0, user, cost) for user, cost in enumerate(far)))
    again = known.assign(users="hard")
    found = [
        difference
        for table in (known, again)
        for difference in result_tables("t", "T", "eval-results", table)[1]
    ]
    assert len(found) > 2
    table = difference_table(found)
    assert [row[:2] for row in table.rows] == [("Adult, All", "MCTS"), ("Adult, Hard", "MCTS")]
    validity, cost, length = table.rows[0][2:]
    assert validity == "1.00 / 0.44 ± 0.44"
    assert cost.endswith(f"{paper:.1f} ± {spread:.1f} (within our interval)")
    assert length.startswith("3.00 / ")
    assert table.markdown().count("- **MCTS.**") == 1
    assert difference_table([]) is None


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        (("eval-results", "network", "givemecredit", "hard", "PEAR-L", "validity"), (0.58, 0.02)),
        (("eval-results-shallow", "tree", "adult", "all", "PEAR-L", "cost"), (168.41, 57.40)),
        (("eval-results-shallow", "logistic", "adult", "all", "CSCF", "cost"), (167.41, 94.55)),
        (("xpear-results", "network", "adult", "hard", "XPEAR-NL", "length"), (3.49, 0.65)),
        (("error-causal", "network", "adult", "all", "PEAR-L", "cost", 0.5), (175.54, 62.29)),
        (("eval-results", "network", "givemecredit", "hard", "RL", "cost"), None),
    ],
)
def test_published_figures_are_those_of_the_paper(cell, value):
    assert published_cell(*cell) == value


def test_published_tables_are_whole():
    known = published_figures()
    counts = known.groupby("table")["value"].count().to_dict()
    # The RL agent's three cells on GiveMeSomeCredit, Hard, are dashes in the paper.
    expected = {"eval-results": 93, "error-causal": 60, "eval-results-shallow": 192}
    assert counts == expected | {"xpear-results": 72}
    assert (
        not known.drop(columns="corruption")
        .duplicated(
            ["table", "classifier", "dataset", "users", "method", "measure", "value", "spread"]
        )
        .all()
    )


def conversation(user: int, mean: float, truth: float, costs: list[float]) -> pd.DataFrame:
    table = rows(*(("pear-exact-l", 0, user, cost) for cost in costs))
    return table.assign(questions=range(len(costs)), k=2, cost_for_mean=mean, cost_for_truth=truth)


def test_regret_is_scaled_per_user_and_users_without_room_are_left_out():
    table = pd.concat(
        [
            conversation(0, 20.0, 10.0, [20.0, 15.0, 10.0]),
            conversation(1, 50.0, 10.0, [50.0, 20.0, 10.0]),
            conversation(2, 7.0, 7.0, [7.0, 7.0, 7.0]),
            rows(*(("exact-true", 0, user, cost) for user, cost in enumerate((8.0, 10.0, 7.0)))),
        ],
        ignore_index=True,
    )
    found = curve(regrets(table)).set_index("questions")
    assert found["regret"].tolist() == [1.0, 0.375, 0.0]
    assert set(found["with_room"]) == {2}
    assert found["excess"][2] == pytest.approx(100 * (27 / 25 - 1))


def test_latex_escapes_what_latex_reads():
    assert escaped("a_b & 5% ± 1") == r"a\_b \& 5\% $\pm$ 1"
    table = Table("t", "100% sure", ("a", "b"), (("x_y", "1"),), ("Note.",))
    assert r"\caption{100\% sure. Note. made}" in table.latex("made")
    assert "x\\_y & 1 \\\\" in table.latex()


def test_markdown_keeps_cells_apart():
    text = Table("t", "T", ("a", "b"), (("x|y", "1"),)).markdown()
    assert "| x\\|y | 1 |" in text
