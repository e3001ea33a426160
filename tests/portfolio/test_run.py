"""Whole portfolios: the same plans whatever the files, the workers and the accidents."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pear.errors import EndpointFailed, InvalidData, InvalidSetting, PearError
from pear.planning.exact import ExactPlanner
from pear.planning.reasons import explain
from pear.portfolio import Everyone, Search, plan_portfolio
from pear.portfolio import run as portfolio_run
from tests.portfolio.small_problem import PROBLEM, WEIGHTS, black_box, people, write

SEARCH = Search(together=16)
EVERYONE = Everyone(WEIGHTS)


def plan(source, output, *, model=None, weights=EVERYONE, workers=1, search=SEARCH, **settings):
    return plan_portfolio(
        PROBLEM,
        model or black_box(),
        source,
        output,
        weights,
        workers=workers,
        search=search,
        **settings,
    )


@pytest.fixture
def table(tmp_path):
    return write(people(), tmp_path / "people.parquet")


def test_batch_and_one_by_one_give_the_same_plans(tmp_path, table):
    summary = plan(table, tmp_path / "plans.parquet")
    written = pd.read_parquet(tmp_path / "plans.parquet")
    planner = ExactPlanner(PROBLEM, black_box())
    assert written["row"].tolist() == list(range(60))
    assert 0 < summary.planned <= summary.refused < summary.people == summary.rows == 60
    for record, row in zip(
        people().drop(columns="id").to_dict("records"), written.itertuples(), strict=True
    ):
        alone = planner.plan(PROBLEM.state(record), WEIGHTS)
        assert row.verdict == alone.certificate.verdict
        assert row.decision == ("approved" if alone.success and not alone.steps else "refused")
        assert row.rows_asked == alone.certificate.rows
        assert json.loads(row.start) == dict(alone.start)
        steps = json.loads(row.steps)
        assert [(s["action"], s["after"]) for s in steps] == [
            (s.action, s.after) for s in alone.steps
        ]
        told = explain(PROBLEM, planner.black_box, alone).plan.steps
        assert [s["reason"] for s in steps] == [s.reason for s in told]
        if alone.success:
            assert row.cost == pytest.approx(alone.cost, abs=1e-9)
            assert row.final_score == pytest.approx(alone.score, abs=1e-9)
            assert row.lower_bound == pytest.approx(alone.certificate.lower_bound, abs=1e-9)
        else:
            assert np.isnan(row.cost)
            assert np.isnan(row.length)


def test_approved_people_are_marked_and_have_nothing_to_do(tmp_path):
    table = write(people(1).assign(income=70.0, savings=90.0), tmp_path / "one.parquet")
    plan(table, tmp_path / "plans.parquet")
    [row] = pd.read_parquet(tmp_path / "plans.parquet").to_dict("records")
    assert (row["decision"], row["cost"], row["length"], row["steps"]) == ("approved", 0, 0, "[]")


@pytest.mark.parametrize("workers", [2, 3])
@pytest.mark.slow
def test_any_number_of_workers_writes_the_same_file(tmp_path, table, workers):
    plan(table, tmp_path / "one.parquet")
    plan(table, tmp_path / "many.parquet", workers=workers)
    assert (tmp_path / "one.parquet").read_bytes() == (tmp_path / "many.parquet").read_bytes()


@pytest.mark.slow
def test_a_cluster_writes_the_same_file(tmp_path, table):
    ray = pytest.importorskip("ray")
    plan(table, tmp_path / "here.parquet")
    try:
        plan(table, tmp_path / "there.parquet", cluster="auto", workers=2)
    finally:
        ray.shutdown()
    assert (tmp_path / "here.parquet").read_bytes() == (tmp_path / "there.parquet").read_bytes()


def test_csv_parquet_and_folders_hold_the_same(tmp_path, table):
    plan(table, tmp_path / "plans.parquet")
    expected = pd.read_parquet(tmp_path / "plans.parquet")
    folder = tmp_path / "people"
    folder.mkdir()
    write(people().iloc[:23], folder / "a.csv")
    write(people().iloc[23:], folder / "b.parquet")
    plan(folder, tmp_path / "plans.csv")
    plan(write(people(), tmp_path / "people.csv"), tmp_path / "plans")
    for found in (pd.read_csv(tmp_path / "plans.csv"), pd.read_parquet(tmp_path / "plans")):
        pd.testing.assert_frame_equal(found, expected, check_dtype=False)


def test_weights_per_person_are_used_and_must_go_with_the_people(tmp_path, table):
    rng = np.random.default_rng(1)
    own = pd.DataFrame(rng.uniform(5, 50, (60, len(WEIGHTS))), columns=list(PROBLEM.weight_names))
    own["id"] = people()["id"]
    plan(table, tmp_path / "plans.parquet", weights=write(own, tmp_path / "weights.csv"))
    written = pd.read_parquet(tmp_path / "plans.parquet")
    planner = ExactPlanner(PROBLEM, black_box())
    for record, weights, cost in zip(
        people().drop(columns="id").to_dict("records"),
        own[list(PROBLEM.weight_names)].to_numpy(),
        written["cost"],
        strict=True,
    ):
        alone = planner.plan(PROBLEM.state(record), weights)
        assert cost == pytest.approx(alone.cost, abs=1e-9) or not alone.success
    few = write(own.iloc[:50], tmp_path / "few.csv")
    with pytest.raises(InvalidData, match=r"one row per .*few\.csv' ends after 50 rows and '.*peo"):
        plan(table, tmp_path / "b.parquet", weights=few)
    more = write(pd.concat([own, own[:4]]), tmp_path / "more.csv")
    with pytest.raises(InvalidData, match=r"people\.parquet' ends after 60 rows and '.*more"):
        plan(table, tmp_path / "d.parquet", weights=more)
    swapped = own.assign(id=own["id"].to_numpy()[::-1])
    summary = plan(table, tmp_path / "c.parquet", weights=write(swapped, tmp_path / "swapped.csv"))
    assert summary.bad == 60
    assert "same order" in pd.read_csv(tmp_path / "c.bad.csv")["reason"][0]


def test_learned_weights_reach_the_people_they_are_of(tmp_path, table):
    dear = WEIGHTS * 3
    plan(table, tmp_path / "plans.parquet", weights=Everyone(WEIGHTS, {"person 4": dear}))
    written = pd.read_parquet(tmp_path / "plans.parquet").set_index("id")["weights"].map(json.loads)
    assert written["person 4"] == dear.tolist()
    assert written["person 5"] == WEIGHTS.tolist()
    nameless = write(people().drop(columns="id"), tmp_path / "nameless.parquet")
    with pytest.raises(InvalidSetting, match="which conversation is whose"):
        plan(nameless, tmp_path / "b.parquet", weights=Everyone(WEIGHTS, {"4": dear}))
    with pytest.raises(InvalidSetting, match="shape"):
        Everyone(WEIGHTS, {"person 4": np.ones((3, 6))})


def test_bad_rows_stand_aside_and_nothing_else_is_lost(tmp_path):
    frame = people().astype(object)
    frame.loc[3, "age"] = "old"
    frame.loc[17, "job"] = "astronaut"
    frame.loc[18, "income"] = ""
    frame.loc[40, "savings"] = 900
    source = write(frame, tmp_path / "people.csv")
    lines = source.read_text().splitlines()
    lines[50] += ",one,more"
    source.write_text("\n".join(lines))
    summary = plan(source, tmp_path / "plans.parquet")
    bad = pd.read_csv(tmp_path / "plans.bad.csv")
    assert bad["row"].tolist() == [3, 17, 18, 40, 49]
    for reason, word in zip(
        bad["reason"], ["'old'", "astronaut", "missing", "100", "8 cells"], strict=True
    ):
        assert word in reason
    clean = write(people(), tmp_path / "clean.csv")
    plan(clean, tmp_path / "clean.parquet")
    expected = pd.read_parquet(tmp_path / "clean.parquet")
    found = pd.read_parquet(tmp_path / "plans.parquet")
    pd.testing.assert_frame_equal(
        found, expected[~expected["row"].isin(bad["row"])].reset_index(drop=True)
    )
    assert (summary.bad, summary.people, summary.rows) == (5, 55, 60)


def test_a_person_the_model_fails_on_stands_aside(tmp_path):
    frame = people()
    frame.loc[7, "income"] = 0.125
    source = write(frame, tmp_path / "people.parquet")
    plan(source, tmp_path / "plans.parquet", model=black_box(fails_at=0.125))
    bad = pd.read_csv(tmp_path / "plans.bad.csv")
    assert bad["row"].tolist() == [7]
    assert "scores must be numbers" in bad["reason"][0]


class Down:
    """A model that answers for a while and is then out of reach."""

    def __init__(self, calls):
        self.calls = calls

    def __call__(self, states):
        self.calls -= 1
        if self.calls < 0:
            raise EndpointFailed("the endpoint does not answer")
        return black_box().score(states)


def test_a_model_out_of_reach_ends_the_run_and_the_next_one_goes_on(tmp_path, table):
    broken = black_box()
    broken.function = Down(12)
    with pytest.raises(EndpointFailed):
        plan(table, tmp_path / "plans.parquet", model=broken)
    assert not (tmp_path / "plans.parquet").exists()
    summary = plan(table, tmp_path / "plans.parquet")
    assert 0 < summary.resumed < 60
    plan(table, tmp_path / "again.parquet")
    assert (tmp_path / "plans.parquet").read_bytes() == (tmp_path / "again.parquet").read_bytes()
    assert not (tmp_path / "plans.parts").exists()


def test_resuming_does_no_row_twice(tmp_path, table, monkeypatch):
    class Enough(Exception):
        pass

    def stop(progress):
        if progress.done >= 28:
            raise Enough

    with pytest.raises(Enough):
        plan(table, tmp_path / "plans.parquet", progress=stop)
    done = []
    original = portfolio_run.plan_group
    monkeypatch.setattr(
        portfolio_run, "plan_group", lambda task: (done.append(task[0].number), original(task))[1]
    )
    assert plan(table, tmp_path / "plans.parquet").resumed == 28
    assert done == [3, 4]


def test_an_unfinished_run_of_something_else_is_refused_unless_discarded(tmp_path, table):
    with pytest.raises(ZeroDivisionError):
        plan(table, tmp_path / "plans.parquet", progress=lambda progress: 1 / (progress.done == 0))
    with pytest.raises(InvalidSetting, match="differs in weights"):
        plan(table, tmp_path / "plans.parquet", weights=Everyone(WEIGHTS * 2))
    summary = plan(table, tmp_path / "plans.parquet", weights=Everyone(WEIGHTS * 2), restart=True)
    assert summary.resumed == 0
    with pytest.raises(InvalidSetting, match="exists already"):
        plan(table, tmp_path / "plans.parquet")


def test_a_part_cut_off_on_disk_is_done_again(tmp_path, table):
    with pytest.raises(ZeroDivisionError):
        plan(table, tmp_path / "plans.parquet", progress=lambda p: 1 / (p.done < 44))
    part = tmp_path / "plans.parts" / "part-0000001.parquet"
    part.write_bytes(part.read_bytes()[:100])
    with (tmp_path / "plans.parts" / "journal.jsonl").open("a") as journal:
        journal.write('{"group": 3, "ro')
    assert plan(table, tmp_path / "plans.parquet").resumed == 36
    plan(table, tmp_path / "again.parquet")
    assert (tmp_path / "plans.parquet").read_bytes() == (tmp_path / "again.parquet").read_bytes()


KILLED = """
import os, sys
from pathlib import Path
from pear.portfolio import Everyone, Search, plan_portfolio
from tests.portfolio.small_problem import PROBLEM, WEIGHTS, black_box

def report(progress):
    print(progress.done, flush=True)

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    plan_portfolio(PROBLEM, black_box(), folder / "people.parquet", folder / "plans.parquet",
                   Everyone(WEIGHTS), workers=2, search=Search(together=16), progress=report)
"""


@pytest.mark.slow
def test_a_run_killed_twice_in_the_middle_gives_the_same_output(tmp_path):
    table = write(people(240), tmp_path / "people.parquet")
    (tmp_path / "run.py").write_text(KILLED)
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root), str(root / "src")])}
    begin = [sys.executable, str(tmp_path / "run.py"), str(tmp_path)]
    for least in (16, 96):
        with subprocess.Popen(begin, env=environment, stdout=subprocess.PIPE, text=True) as running:
            for line in running.stdout:
                if int(line) >= least:
                    running.send_signal(signal.SIGKILL)
                    break
        assert not (tmp_path / "plans.parquet").exists()
        time.sleep(0.2)
    summary = plan(table, tmp_path / "plans.parquet", workers=2)
    assert 96 <= summary.resumed < 240
    plan(table, tmp_path / "whole.parquet")
    assert (tmp_path / "plans.parquet").read_bytes() == (tmp_path / "whole.parquet").read_bytes()


STOPPED = """
import sys, time
from pathlib import Path
from pear.portfolio import Everyone, Search, plan_portfolio
from tests.portfolio.small_problem import PROBLEM, WEIGHTS, Score, black_box

class Slow(Score):
    def __call__(self, states):
        time.sleep(0.02)
        return super().__call__(states)

def report(progress):
    print(progress.done, progress.stopping, flush=True)

if __name__ == "__main__":
    folder, model = Path(sys.argv[1]), black_box()
    model.function = Slow()
    plan_portfolio(PROBLEM, model, folder / "people.parquet", folder / "plans.parquet",
                   Everyone(WEIGHTS), workers=int(sys.argv[2]), search=Search(together=8),
                   progress=report)
"""


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.slow
def test_ctrl_c_keeps_everybody_being_searched(tmp_path, workers):
    table = write(people(240), tmp_path / "people.parquet")
    (tmp_path / "run.py").write_text(STOPPED)
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root), str(root / "src")])}
    begin = [sys.executable, str(tmp_path / "run.py"), str(tmp_path), str(workers)]
    seen, pressed = [], False
    with subprocess.Popen(
        begin, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as running:  # fmt: skip
        for line in running.stdout:
            seen.append(line.split())
            if int(seen[-1][0]) >= 12 and not pressed:
                running.send_signal(signal.SIGINT)
                pressed = True
        assert "KeyboardInterrupt" in running.stderr.read()
    told = [int(done) for done, stopping in seen if stopping == "True"]
    # Whoever was being searched when it was pressed is done afterwards, and nobody else begun: at
    # most two groups of each worker, and the one on its way to them.
    assert told[0] <= told[-1] <= told[0] + 5 * 8 < 240
    summary = plan(table, tmp_path / "plans.parquet", search=Search(together=8))
    assert summary.resumed == told[-1]
    plan(table, tmp_path / "whole.parquet", search=Search(together=8))
    assert (tmp_path / "plans.parquet").read_bytes() == (tmp_path / "whole.parquet").read_bytes()


class Deadly:
    """Kills its own process the first two times it is asked; ``place`` remembers how often."""

    def __init__(self, place):
        self.place = place

    def __call__(self, states):
        marks = [self.place / "first", self.place / "second"]
        for mark in marks:
            if len(states) > 3 and os.getpid() != int((self.place / "parent").read_text()):
                try:
                    mark.touch(exist_ok=False)
                except FileExistsError:
                    continue
                os.kill(os.getpid(), signal.SIGKILL)
        return black_box().score(states)


@pytest.mark.slow
def test_a_worker_killed_twice_gives_the_same_output(tmp_path, table):
    (tmp_path / "parent").write_text(str(os.getpid()))
    model = black_box()
    model.function = Deadly(tmp_path)
    plan(table, tmp_path / "plans.parquet", model=model, workers=2)
    assert (tmp_path / "second").exists()
    plan(table, tmp_path / "whole.parquet")
    assert (tmp_path / "plans.parquet").read_bytes() == (tmp_path / "whole.parquet").read_bytes()


def test_two_runs_never_share_an_output(tmp_path, table):
    def again(progress):
        with pytest.raises(InvalidSetting, match="another run"):
            plan(table, tmp_path / "plans.parquet")

    plan(table, tmp_path / "plans.parquet", progress=again)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"workers": 0}, "workers"),
        ({"search": Search(max_rows=0)}, "max_rows"),
        ({"search": Search(max_length=0)}, "max_length"),
        ({"search": Search(max_changes_per_feature=0)}, "max_changes_per_feature"),
        ({"weights": Everyone(WEIGHTS[:4])}, "6 entries"),
        ({"weights": Everyone(WEIGHTS, {"person 1": WEIGHTS * np.nan})}, "weights"),
    ],
)
def test_wrong_settings_are_refused_and_leave_nothing_behind(tmp_path, table, settings, message):
    with pytest.raises(PearError, match=message):
        plan(table, tmp_path / "plans.parquet", **settings)
    assert not (tmp_path / "plans.parts").exists()
    plan(table, tmp_path / "plans.parquet")


def test_what_is_no_setting_is_refused(tmp_path, table):
    with pytest.raises(InvalidSetting, match="together"):
        Search(together=0)
    with pytest.raises(InvalidSetting, match=r"\.parquet or \.csv"):
        plan(table, tmp_path / "plans.xlsx")


def test_an_unfinished_run_that_did_nothing_is_no_hindrance(tmp_path, table):
    broken = black_box()
    broken.function = Down(4)
    with pytest.raises(EndpointFailed):
        plan(table, tmp_path / "plans.parquet", model=broken)
    assert not (tmp_path / "plans.parts").exists()
    (tmp_path / "plans.parts").mkdir()
    (tmp_path / "plans.parts" / "journal.jsonl").write_text('{"people": "of a killed run"}\n')
    assert plan(table, tmp_path / "plans.parquet").resumed == 0


def test_the_summary_counts_what_is_proved_and_says_what_is_not(tmp_path, table):
    summary = plan(table, tmp_path / "all.parquet")
    assert (summary.bounded, summary.unknown) == (0, 0)
    assert "Not proved" not in summary.words()
    assert (
        f". Proved, among the steps considered: {summary.planned} plans are each the cheapest"
        in summary.words()
    )
    summary = plan(table, tmp_path / "few.parquet", search=Search(max_rows=14))
    written = pd.read_parquet(tmp_path / "few.parquet")
    found = written[written["decision"] == "refused"]["verdict"].value_counts()
    assert found["bounded"] > 0
    assert found["unknown"] > 0
    assert summary.verdicts == {name: found.get(name, 0) for name in summary.verdicts}
    words = summary.words()
    assert f"Not proved: {found['bounded']} plans may not be the cheapest" in words
    assert f"{found['unknown']} people without one may have one (unknown)" in words


def test_lines_lost_in_an_open_quote_are_counted(tmp_path):
    lines = write(people(20), tmp_path / "people.csv").read_text().splitlines()
    lines[4] = '"' + lines[4]
    lines[13] += '"'
    (tmp_path / "people.csv").write_text("\n".join(lines))
    summary = plan(tmp_path / "people.csv", tmp_path / "plans.csv")
    assert (summary.rows, summary.bad, summary.joined_lines) == (11, 1, 10)
    assert "Beware: 10 lines" in summary.words()
