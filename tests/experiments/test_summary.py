"""Aggregation: the paper's definitions, checked against its own rows, and ours beside them."""

import numpy as np
import pandas as pd
import pytest

from pear.datasets.published import bench_folder
from pear.experiments.corruption import corruption_lines, removed_edges
from pear.experiments.drawing import Table, escaped
from pear.experiments.regret import curve
from pear.experiments.report import findings, second_verdict, third_verdict
from pear.experiments.summary import (
    cell,
    final,
    over_users,
    paired,
    published_cell,
    published_curve,
    published_figures,
    published_regret,
    published_rows,
    whole_runs,
)
from pear.experiments.tables import method_lines, rivals

needs_bench = pytest.mark.skipif(bench_folder() is None, reason="PEAR_BENCH is not set")


def rows(*cells: tuple[str, int, int, float]) -> pd.DataFrame:
    """(method, run, user, cost); a cost of NaN is a failure."""
    table = pd.DataFrame(cells, columns=["method", "run", "user", "cost"])
    return table.assign(
        success=table["cost"].notna(),
        length=table["cost"] * 0 + 2,
        questions=0,
        answered=0,
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
    cost = cell(table, "cost")
    assert cost.mean == 61.0  # (20 + 100) / 2 and STOP, not the mean of the three successes
    assert cost.users == 2
    # Variances of the users' runs: 200, and 0 of the one with a single success.
    assert cost.spread == pytest.approx(np.sqrt((200.0 + 0.0) / 2))
    validity = cell(table, "validity")
    assert validity.mean == 0.75
    assert validity.spread == pytest.approx(np.sqrt((0.0 + 0.5) / 2))


def test_a_single_run_has_no_spread_and_a_method_that_never_succeeds_no_cost():
    assert np.isnan(cell(rows(("m", 0, 0, 4.0)), "cost").spread)
    assert np.isnan(cell(rows(("m", 0, 0, NONE)), "cost").mean)


def test_the_interval_covers_the_mean_about_as_often_as_it_says():
    rng = np.random.default_rng(3)
    hits = 0
    for _ in range(200):
        found = over_users(rng.exponential(size=60))
        hits += found.low <= 1.0 <= found.high
    assert 0.87 <= hits / 200 <= 0.99


def test_systems_are_compared_on_users_both_solve():
    ours = pd.Series({0: 5.0, 1: 5.0, 2: 1.0, 9: 1000.0})
    both = paired(ours, pd.Series({0: 10.0, 1: 5.0, 2: 0.5, 7: 1.0}))
    assert both is not None
    assert both.users == 3
    assert both.ratio == pytest.approx(11.0 / 15.5)
    assert (both.cheaper, both.equal, both.dearer) == pytest.approx((1 / 3, 1 / 3, 1 / 3))
    assert both.low <= both.ratio <= both.high
    assert paired(ours, pd.Series({7: 1.0})) is None


def test_regret_by_the_papers_rule():
    cost = pd.Series([15.0, 2.0, 9.0, 7.0, 0.0])
    best = pd.Series([10.0, 1.0, 4.0, 7.0, 3.0])
    worst = pd.Series([20.0, 1.5, 2.0, 7.0, 5.0])
    # Half way; clipped to 1; negative room counts as 1; 0 / 0 is dropped; clipped to 0.
    assert published_regret(cost, best, worst).to_dict() == {0: 0.5, 1: 1.0, 2: 1.0, 4: 0.0}


def test_regret_leaves_out_users_whom_not_all_three_solve():
    cost, best, worst = (
        pd.Series({0: 5.0, 1: 5.0}),
        pd.Series({0: 5.0}),
        pd.Series({0: 9.0, 1: 9.0}),
    )
    assert published_regret(cost, best, worst).to_dict() == {0: 0.0}


@needs_bench
@pytest.mark.parametrize(
    ("dataset", "method", "k", "value"),
    [
        ("adult", "pear_nl", 4, 0.083),
        ("adult", "pear_l", 2, 0.398),
        ("givemecredit", "pear_nl", 2, 0.214),
        ("givemecredit", "pear_l", 2, 0.451),
    ],
)
def test_the_papers_rule_gives_the_papers_regret(dataset, method, k, value):
    assert published_curve(dataset, method, k)[10] == pytest.approx(value, abs=5e-4)


@needs_bench
@pytest.mark.parametrize(
    ("where", "method", "name", "table"),
    [
        (("adult", "network", "all"), "pear_nl", "PEAR-NL", "eval-results"),
        (("givemecredit", "network", "hard"), "pear_l", "PEAR-L", "eval-results"),
        (("adult", "tree", "all"), "pear_l", "PEAR-L", "eval-results-shallow"),
        (("adult", "network", "all"), "cscf", "CSCF", "eval-results"),
    ],
)
def test_the_papers_definitions_give_the_papers_cells(where, method, name, table):
    theirs = published_rows(*where, method, k=2 if "pear" in method else 0)
    dataset, classifier, users = where
    for measure in ("validity", "cost", "length"):
        found = cell(theirs, measure)
        printed = published_cell(table, classifier, dataset, users, name, measure)
        assert (found.mean, found.spread) == pytest.approx(printed, abs=0.006)


def test_a_competitor_is_compared_on_its_own_successes_and_on_validity():
    table = rows(
        *(("pear-l", 0, user, 10.0) for user in range(4)),
        *(("mcts", 0, user, 20.0 if user else NONE) for user in range(4)),
        *(("fare", 0, user, 5.0) for user in range(4)),
    )
    found = rivals(table).set_index("rival")
    assert found.loc["MCTS", ["both", "ratio", "validity_gap"]].tolist() == [3, 0.5, 0.25]
    assert found.loc["FARE", "ratio"] == 2.0
    verdict = second_verdict(found.reset_index())
    assert "Does not hold everywhere" in verdict
    assert "In 1 of 2 comparisons" in verdict
    assert "dearer: FARE (Adult, All)" in verdict


def test_the_third_verdict_needs_costs_and_validity_to_hold():
    removed = pd.DataFrame(
        {"dataset": "adult", "users": "all", "line": "PEAR (L)", "corruption": [0.5, 1.0]}
        | {"ratio": [1.05, 1.1], "validity_gap": [0.0, 0.0], "told": [1.0, 1.04]}
    )
    assert third_verdict(removed).startswith("**Holds.**")
    assert "+10% (Adult, All with 100% of the edges removed; +4% where" in third_verdict(removed)
    assert third_verdict(removed.assign(ratio=1.3)).startswith("**Does not hold.**")
    assert "validity falls by up to 0.10" in third_verdict(removed.assign(validity_gap=-0.1))


def test_lines_say_which_share_of_the_edges_is_removed():
    whole = rows(("pear-exact-l", 0, 0, 10.0), ("pear-exact-l", 0, 1, 50.0)).assign(k=2)
    half = whole.assign(corruption=0.5)
    lines = corruption_lines(pd.concat([whole, half]), published=False)
    assert [line.label for line in lines] == ["PEAR (exact), L: none", "PEAR (exact), L: 0.5"]


def test_without_the_papers_users_nothing_is_compared_one_by_one():
    [line] = method_lines(rows(("mcts", 0, 0, 10.0)), published=False)
    assert line.theirs.empty
    assert line.printed == "MCTS"


def test_every_finding_says_how_it_was_made():
    known = findings()
    assert known["finding"].notna().all()
    assert known["command"].str.startswith(("pear bench ", "python benchmarks/")).all()


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


@needs_bench
@pytest.mark.parametrize("dataset", ["adult", "givemecredit"])
@pytest.mark.parametrize("users", ["all", "hard"])
def test_the_papers_rows_for_trees_stand_under_other_names(dataset, users):
    known = {"FARE": "cscf", "EFARE": "fare", "RL": "efare", "CSCF": "rl", "MCTS": "mcts"}
    for printed, method in known.items():
        theirs = cell(published_rows(dataset, "tree", users, method), "cost").mean
        where = ("eval-results-shallow", "tree", dataset, users, printed, "cost")
        assert published_cell(*where)[0] == pytest.approx(theirs, abs=0.006)


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


def conversation(user: int, truth: float, costs: list[float]) -> pd.DataFrame:
    table = rows(*(("pear-exact-l", 0, user, cost) for cost in costs))
    return table.assign(questions=range(len(costs)), k=2, cost_for_truth=truth)


def test_a_curve_has_the_papers_regret_and_the_cost_above_the_optimum():
    table = pd.concat(
        [
            conversation(0, 10.0, [20.0, 15.0, 10.0]),
            conversation(1, 10.0, [50.0, 20.0, 10.0]),
            conversation(2, 7.0, [7.0, 7.0, 7.0]),
        ],
        ignore_index=True,
    )
    best = pd.Series({0: 8.0, 1: 10.0, 2: 7.0})
    found = curve(table, best).set_index("questions")
    assert found["regret"].tolist() == [1.0, 0.375, 0.0]
    assert set(found["people"]) == {2}  # user 2 has 0 / 0
    assert found["above"][2] == pytest.approx(27 / 25 - 1)


def test_the_rows_of_a_conversation_end_with_its_last_question():
    table = conversation(0, 10.0, [20.0, 15.0, 10.0])
    assert final(table)["cost"].tolist() == [10.0]


def test_latex_escapes_what_latex_reads():
    assert escaped("a_b & 5% ± 1") == r"a\_b \& 5\% $\pm$ 1"
    table = Table("t", "100% sure", ("a", "b"), (("x_y", "1"),), ("Note.",))
    assert r"\caption{100\% sure. Note.}" in table.latex("made")
    assert "x\\_y & 1 \\\\" in table.latex("made")


def test_markdown_keeps_cells_apart():
    text = Table("t", "T", ("a", "b"), (("x|y", "1"),)).markdown()
    assert "| x\\|y | 1 |" in text


def test_what_a_wrong_graph_costs_is_told_apart_from_what_the_answers_cost():
    whole = rows(("pear-l", 0, 0, 10.0), ("pear-l", 0, 1, 30.0)).assign(k=2, cost_for_truth=10.0)
    wrong = whole.assign(corruption=0.5, cost=[20.0, 60.0], cost_for_truth=15.0)
    [line] = removed_edges(pd.concat([whole, wrong])).itertuples()
    assert (line.ratio, line.told, line.told_cost, line.people) == (2.0, 1.5, 15.0, 2)


def test_a_run_that_not_all_users_have_yet_is_left_out():
    table = rows(("m", 0, 0, 1.0), ("m", 0, 1, 2.0), ("m", 1, 0, 9.0), ("n", 1, 0, 4.0))
    assert whole_runs(table)["cost"].tolist() == [1.0, 2.0, 4.0]
