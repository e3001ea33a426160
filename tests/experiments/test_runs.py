"""Runs: resumed, shared between workers, and joined by other people's methods and data."""

import os
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from tests.experiments.own import PLACE
from typer.testing import CliRunner

from pear.cli.main import app
from pear.errors import FingerprintMismatch, InvalidSetting
from pear.experiments.conversations import corrupted
from pear.experiments.experiment import Task, asset_key, build_world, find_method
from pear.experiments.profiles import (
    COMPETITORS,
    EXACT,
    PEAR,
    PROFILES,
    Profile,
    find_profile,
)
from pear.experiments.report import read_rows, run_suite
from pear.experiments.run import Store, make_tasks, run_experiments
from pear.experiments.tables import SHALLOW
from pear.experiments.trained import seen_world, training_settings

OWN = "tests.experiments.own:"
SMALL = replace(
    PROFILES["smoke"], users=4, chunk=1, questions=1, methods=("mcts", "pear-exact-l", "exact-true")
)


def rows_of(profile: Profile, folder: Path, **settings: object) -> pd.DataFrame:
    tasks = make_tasks(profile, profile.methods)
    run_experiments(tasks, profile, folder, **settings)
    return read_rows(folder)


@pytest.fixture(scope="module")
def expected(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    """The rows of one process, without anything going wrong."""
    profile = replace(SMALL, methods=(*SMALL.methods, "exact-mean"))
    return rows_of(profile, tmp_path_factory.mktemp("here"), workers=1)


def as_if_it_never_died(rows: pd.DataFrame) -> pd.DataFrame:
    method = rows["method"].replace(f"{OWN}DIES_ONCE", "exact-mean")
    keys = ["method", "run", "user", "questions"]
    return rows.assign(method=method).sort_values(keys, ignore_index=True)


@pytest.mark.slow
@pytest.mark.parametrize("cluster", [None, "auto"])
def test_killed_workers_and_their_number_change_no_row(
    expected, tmp_path, monkeypatch, cluster, cache
):
    markers = tmp_path / "markers"
    markers.mkdir()
    monkeypatch.setenv(PLACE, str(markers))
    root = str(Path(__file__).parents[2])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([root, os.environ.get("PYTHONPATH", "")]))
    ray = pytest.importorskip("ray") if cluster else None
    profile = replace(SMALL, methods=(f"{OWN}DIES_ONCE", *SMALL.methods))
    try:
        found = rows_of(profile, tmp_path / "run", workers=2, cluster=cluster)
    finally:
        if ray is not None:
            ray.shutdown()
    assert (markers / "died-0").exists()
    pd.testing.assert_frame_equal(
        as_if_it_never_died(found), as_if_it_never_died(expected), check_exact=True
    )


@pytest.mark.slow
def test_a_run_that_was_stopped_goes_on_where_it_was(expected, tmp_path, monkeypatch, cache):
    class Stopped(Exception):
        pass

    def stop(done: int, total: int, note: str) -> None:
        if done == 3:
            raise Stopped

    tasks = make_tasks(SMALL, SMALL.methods)
    with pytest.raises(Stopped):
        run_experiments(tasks, SMALL, tmp_path, workers=1, follow=stop)
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "rows").iterdir()}
    assert len(kept) == 3
    steps = []
    run_experiments(tasks, SMALL, tmp_path, workers=1, follow=lambda *step: steps.append(step))
    assert steps[-1][:2] == (len(tasks) - 3, len(tasks) - 3)
    assert all(path.stat().st_mtime_ns == written for path, written in kept.items())
    whole = expected[expected["method"] != "exact-mean"]
    pd.testing.assert_frame_equal(
        as_if_it_never_died(read_rows(tmp_path)), as_if_it_never_died(whole), check_exact=True
    )


def test_a_run_whose_time_is_up_goes_on_later(tmp_path, cache):
    profile = replace(SMALL, methods=("exact-true", "exact-mean"))
    tasks = make_tasks(profile, profile.methods)
    early = run_experiments(tasks, profile, tmp_path, workers=1, minutes=0.0)
    assert early.late
    assert read_rows(tmp_path).empty
    assert run_suite(("competitors",), profile, tmp_path, workers=1, minutes=0.0) is None
    later = run_experiments(tasks, profile, tmp_path, workers=1, minutes=60.0)
    assert not later.late
    assert len(read_rows(tmp_path)) == len(tasks)


def test_a_method_that_fails_ends_no_other(tmp_path, cache):
    profile = replace(SMALL, methods=(f"{OWN}FORGETFUL", "exact-true"))
    with pytest.raises(InvalidSetting, match="a success without 'cost'"):
        rows_of(profile, tmp_path, workers=1)
    assert set(read_rows(tmp_path)["method"]) == {"exact-true"}


def test_rows_say_which_code_made_them(tmp_path, cache, monkeypatch):
    monkeypatch.setenv("PEAR_COMMIT", "abc123")
    profile = replace(SMALL, methods=("exact-mean",))
    tasks = make_tasks(profile, profile.methods)
    ended = run_experiments(tasks, profile, tmp_path, workers=1)
    assert set(ended.store.read(tasks)["commit"]) == {"abc123"}


def test_the_first_run_of_everything_comes_before_the_second(tmp_path, cache):
    profile = replace(SMALL, methods=("mcts", "pear-exact-l"), users=1)
    notes = []
    tasks = make_tasks(profile, profile.methods)
    follow = lambda done, total, note: notes.append(note)  # noqa: E731
    run_experiments(tasks, profile, tmp_path, workers=1, follow=follow)
    ran = [note for note in notes if "-run" in note]
    assert [note.split("-run")[1][0] for note in ran] == ["0", "0", "1", "1"]
    assert "mcts" in ran[0]  # and the slow one of each after the others


def test_two_runs_of_one_method_differ_and_a_deterministic_one_is_run_once(expected):
    searched = expected[expected["method"] == "mcts"].set_index(["run", "user"])
    assert not searched.loc[0]["cost"].equals(searched.loc[1]["cost"])
    assert set(expected.loc[expected["method"] == "exact-true", "run"]) == {0}


def test_shallow_classifiers_may_have_fewer_users_and_this_is_said():
    profile = replace(SMALL, shallow_users=3)
    shallow = SHALLOW.tasks(profile)
    assert {task.last for task in shallow} == {1, 2, 3}
    assert {task.last for task in make_tasks(profile, profile.methods)} == {1, 2, 3, 4}
    assert "the first 4 users of each set (3 with shallow classifiers)" in profile.words()
    assert "shallow" not in replace(SMALL, shallow_users=9).words()


def test_the_reduced_profile_leaves_no_method_of_the_papers_tables_out():
    profile = PROFILES["reduced"]
    run = {task.method for task in SHALLOW.tasks(profile)}
    assert run == {*COMPETITORS, *PEAR, *EXACT}
    assert profile.words() == (
        "profile reduced: the first 60 users of each set, run seed 0, 10 questions"
    )


def test_other_settings_do_not_go_on_in_the_same_folder(tmp_path):
    Store(tmp_path, SMALL)
    with pytest.raises(FingerprintMismatch, match="questions = 1, not 5"):
        Store(tmp_path, replace(SMALL, questions=5))


def test_methods_and_data_sets_of_others_join_by_import_path(tmp_path, cache):
    settings = ["bench", "competitors", "--output", str(tmp_path), "--workers", "1"]
    settings += ["--methods", f"{OWN}LONG_WAY,exact-true", "--datasets", f"{OWN}small_world"]
    ended = CliRunner().invoke(app, [*settings, "--users", "9"])
    assert ended.exit_code == 0, ended.output
    assert "smoke (changed)" in ended.output
    rows = read_rows(tmp_path)
    assert set(rows["user"]) == set(range(5))
    [table] = (tmp_path / "tables").glob("competitors-*.md")
    assert "| The long way | 5 × 2 | 1.00 ± 0.00 | - | 1003.0 ± 0.0 |" in table.read_text()


def test_a_success_without_a_cost_is_refused(tmp_path, cache):
    profile = replace(SMALL, methods=(f"{OWN}FORGETFUL",))
    with pytest.raises(InvalidSetting, match="a success without 'cost'"):
        rows_of(profile, tmp_path, workers=1)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: find_method("alphago"), "there is no method 'alphago'; it must be one of fare"),
        (lambda: find_method("json:alphago"), "cannot be imported.*check the path"),
        (lambda: build_world("mnist", "network", "all"), "there is no data set 'mnist'"),
        (lambda: build_world("loan_book", "forest", "all"), "'classifier' must be one of network"),
        (lambda: find_profile("quick"), "'profile' must be one of smoke, reduced, full"),
        (lambda: PROFILES["smoke"].changed(colour=3), "a profile has no setting 'colour'"),
    ],
)
def test_what_does_not_exist_is_refused_with_what_does(call, said):
    with pytest.raises(InvalidSetting, match=said):
        call()


def test_the_command_refuses_an_unknown_experiment(tmp_path):
    ended = CliRunner().invoke(app, ["bench", "alchemy", "--output", str(tmp_path)])
    assert isinstance(ended.exception, InvalidSetting)


def test_a_report_before_the_run_has_ended_says_what_is_missing(tmp_path, cache):
    pytest.importorskip("matplotlib")
    page = run_suite(("graphs", "actions"), SMALL, tmp_path, run=False)
    assert "**Unfinished: 1 of 1 tasks have no rows yet.**" in page.read_text()
    assert "| earn_more |" in (tmp_path / "tables" / "actions-loan_book.md").read_text()


def test_nothing_to_run_is_said(tmp_path):
    with pytest.raises(InvalidSetting, match="nothing to run"):
        run_experiments([], SMALL, tmp_path)


def test_each_run_removes_other_edges_where_a_choice_is_left():
    def removed(run, share):
        task = Task("loan_book", "network", "all", "pear-l", run, 0, 2, 2, 2, share)
        return asset_key(task, "wfare"), corrupted(world.problem, share, task.draw)[0].costs.edges

    world = build_world("loan_book", "network", "all")
    assert removed(0, 0.5)[0] != removed(1, 0.5)[0]
    assert removed(0, 0.5)[1] != removed(1, 0.5)[1]
    assert removed(0, 1.0) == removed(1, 1.0)


def test_steps_that_lost_what_makes_them_dear_do_not_draw_the_search_to_them():
    world = build_world("loan_book", "network", "all")
    for share, drawn in ((0.0, 1.0), (0.5, 1e-5)):
        seen = seen_world(world, share)
        assert training_settings(seen, "wfare", PROFILES["smoke"]).cost_weight == drawn
        assert training_settings(seen, "fare", PROFILES["smoke"]).cost_weight == 1.0
