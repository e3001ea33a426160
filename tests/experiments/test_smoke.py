"""The smoke run: every experiment leaves rows, tables and figures, and says what made them."""

import re
import shutil
from pathlib import Path

import pandas as pd
import pytest

from pear.cli.bench import NAMES
from pear.experiments.experiment import COLUMNS
from pear.experiments.profiles import PROFILES
from pear.experiments.report import EXPERIMENTS, read_rows, run_suite

DRAWINGS = ("graph-loan_book", "automaton-loan_book")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def rows(smoke: Path) -> pd.DataFrame:
    return read_rows(smoke)


def test_the_command_names_every_experiment():
    assert tuple(EXPERIMENTS) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_every_experiment_leaves_tidy_rows(smoke, name):
    table = pd.read_parquet(smoke / "data" / f"{name}.parquet")
    assert set(COLUMNS) <= set(table.columns)
    assert len(table) > 0


def test_every_method_of_the_profile_was_run(rows):
    assert set(rows["method"]) == set(PROFILES["smoke"].methods)


def test_no_plan_on_the_grid_with_single_changes_beats_the_optimum(rows):
    keys = ["classifier", "users", "user"]
    best = rows[rows["method"] == "exact-true"].set_index(keys)["cost"]
    asked = rows[rows["method"].str.startswith("pear-exact") | (rows["method"] == "exact-mean")]
    assert len(asked) > 50
    optimum = best.reindex(pd.MultiIndex.from_frame(asked[keys])).to_numpy()
    assert (asked["cost"].to_numpy() >= optimum - 1e-6).all()


def test_before_the_first_question_the_plan_is_for_the_prior_mean(rows):
    first = rows[(rows["k"] > 0) & (rows["questions"] == 0) & rows["success"]]
    assert len(first) > 10
    assert (first["cost"] == first["cost_for_mean"]).all()


def test_failures_have_no_cost_and_successes_have_one(rows):
    assert rows.loc[~rows["success"], ["cost", "length"]].isna().all().all()
    assert rows.loc[rows["success"], ["cost", "length"]].notna().all().all()
    assert (rows["success"]).any()
    assert (~rows["success"]).any()


def test_corrupted_graphs_change_plans_but_costs_stay_those_of_the_full_graph(rows):
    asked = rows[(rows["method"] == "pear-exact-l") & (rows["classifier"] == "network")]
    asked = asked[(asked["k"] == 2) & (asked["run"] == 0)]
    best = rows[(rows["method"] == "exact-true") & (rows["classifier"] == "network")]
    whole = asked[asked["corruption"] == 0].set_index(["user", "questions"])["cost"]
    gone = asked[asked["corruption"] == 1].set_index(["user", "questions"])["cost"]
    assert (whole != gone.reindex(whole.index)).any()
    floor = best.set_index("user")["cost"].reindex(gone.index.get_level_values("user"))
    assert (gone.to_numpy() >= floor.to_numpy() - 1e-6).all()


@pytest.mark.parametrize("name", ["competitors", "corruption", "xpear"])
def test_every_table_has_the_exact_rows(smoke, name):
    text = (smoke / "tables" / f"{name}-loan_book-network-all.md").read_text()
    assert "| PEAR (exact), L" in text
    assert "Ratio (95%)" in text


def test_tables_come_as_markdown_and_latex_with_their_stamp(smoke):
    tables = sorted((smoke / "tables").glob("*.md"))
    assert len(tables) > 8
    for table in tables:
        latex = table.with_suffix(".tex").read_text()
        assert r"\bottomrule" in latex
        for text in (table.read_text(), latex):
            assert "profile smoke" in text
            assert "run seed 0 to 1" in text
            assert re.search(r"numpy \d", text)
            assert re.search(r"\d{4}-\d\d-\d\d", text)


@pytest.mark.parametrize("name", ["regret", "cost-length", "score-length", *DRAWINGS])
def test_figures_come_as_svg_and_png_with_their_stamp(smoke, name):
    drawing = (smoke / "figures" / f"{name}.svg").read_text()
    image = (smoke / "figures" / f"{name}.png").read_bytes()
    assert drawing.startswith("<?xml")
    assert image.startswith(b"\x89PNG")
    for text in (drawing, image.decode("latin-1")):
        assert re.search(r"profile smoke: .* run seed 0 to 1 .* numpy \d.* \d{4}-\d\d-\d\d", text)


def test_the_pages_show_their_figures_and_name_the_protocol(smoke):
    page = (smoke / "results.md").read_text()
    names = re.findall(r"\(results/([a-z-]+)\.md\)", page)
    assert names == [*EXPERIMENTS, "effort"]
    inner = {name: (smoke / "results" / f"{name}.md").read_text() for name in names}
    shown = re.findall(r"!\[[^]]*\]\(\.\./([^)]+)\)", "".join(inner.values()))
    assert len(shown) >= 5
    assert all((smoke / place).is_file() for place in shown)
    assert "What a run reseeds" in inner["competitors"]
    assert "Costs are under the true weights, count 1 for STOP" in page
    assert "each has a policy trained for its graph" in inner["corruption"]
    assert "## Where the loss comes from" in inner["corruption"]
    assert "Unfinished" not in page
    assert (page + "".join(inner.values())).count("profile smoke") == 1  # said once


def test_the_page_begins_with_a_verdict_on_each_question(smoke):
    text = (smoke / "results.md").read_text()
    opening = text[: text.index("\n## ")]
    for name in ("Q1", "Q2", "Q3"):
        assert re.search(rf"\*\*{name}\. [^*]+\*\* \*\*(Holds|Does not hold)", opening)
    assert len(text.splitlines()) <= 120


def test_ten_questions_are_counted_as_answered(rows):
    led = rows[rows["method"].isin(["pear-nl", "pear-l"]) & (rows["questions"] == 2)]
    assert (led["answered"] == 2).mean() > 0.9
    assert (rows.loc[rows["k"] == 0, "answered"] == 0).all()


def test_a_report_is_made_again_from_the_rows_it_left_beside_its_page(smoke, tmp_path, cache):
    again = tmp_path / "again"
    again.mkdir()
    shutil.copy(smoke / "results" / "rows.parquet", again)
    document, profile = tmp_path / "again.md", PROFILES["smoke"]
    run_suite(tuple(EXPERIMENTS), profile, tmp_path / "empty", run=False, document=document)
    for page in (smoke / "results").glob("*.md"):
        there = (again / page.name).read_text().replace("again.md", "results.md")
        assert there == page.read_text()
    # A report on one experiment leaves the rows of the others where they are.
    kept = pd.read_parquet(again / "rows.parquet")
    run_suite(("corruption",), profile, tmp_path / "empty", run=False, document=document)
    assert len(pd.read_parquet(again / "rows.parquet")) == len(kept)


def test_a_finished_run_is_not_run_again(smoke, monkeypatch):
    written = {path: path.stat().st_mtime_ns for path in (smoke / "rows").iterdir()}
    monkeypatch.setattr("pear.experiments.methods.exact_planner", None)
    run_suite(("competitors", "graphs"), PROFILES["smoke"], smoke, workers=1)
    assert {path: path.stat().st_mtime_ns for path in (smoke / "rows").iterdir()} == written
