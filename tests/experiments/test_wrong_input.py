"""Wrong input of ``pear bench`` is refused before the work, in one line of our own."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from tests.experiments.own import small_world
from typer.testing import CliRunner

from pear.cli.main import app
from pear.errors import InvalidData, InvalidSetting, PearError
from pear.experiments.profiles import PROFILES, Profile
from pear.experiments.report import run_suite
from pear.experiments.run import Store, make_tasks, run_experiments

HERE = f"{__name__}:"
OPTIMUM = ("--methods", "exact-true")


@dataclass(frozen=True)
class Gives:
    """A method that returns what it holds, or raises it."""

    what: Any
    label: str = "Gives"

    def solve(self, world: Any, assets: Any, task: Any) -> Any:
        if isinstance(self.what, Exception):
            raise self.what
        return self.what


ROW = {"user": 0, "questions": 0, "success": False, "cost": 1.0, "length": 1.0}
RAISES = Gives(KeyError("no such column"))
REFUSES = Gives(InvalidData("the column 'age' is empty"))
GIVES_THREE = Gives(3)
FORGETS_USERS = Gives([ROW])
NO_SOLVE = replace(RAISES)
object.__setattr__(NO_SOLVE, "solve", None)


def three(classifier: str, users: str) -> int:
    return 3


def broken(classifier: str, users: str) -> None:
    raise OSError("the disk is gone")


def empty(classifier: str, users: str) -> Any:
    return small_world(classifier, users).first(0)


def bench(experiment: str, output: Path | str, *settings: str) -> Any:
    return CliRunner().invoke(
        app, ["bench", experiment, "--output", str(output), "--workers", "1", *settings]
    )


def refused(ended: Any) -> str:
    """The one line the command ends with; anything but an error of ours fails."""
    assert isinstance(ended.exception, PearError), ended.exception
    assert "\n" not in str(ended.exception)
    return str(ended.exception)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (("--methods", "json:dumps"), "'json:dumps' must be an object with a text 'label' and a"),
        (("--methods", f"{HERE}NO_SOLVE"), "NO_SOLVE' must be an object with a text 'label' and"),
        (("--methods", f"{HERE}Gives"), "(got a class)"),
        (("--methods", "antigravity_no:x"), "cannot be imported: ModuleNotFoundError"),
        ((*OPTIMUM, "--datasets", "json:dumps"), "'json:dumps' must be a function of (classifier,"),
        ((*OPTIMUM, "--datasets", f"{HERE}ROW"), "(got a dict: "),
        (("--runs", "0"), "'runs' must be at least 1 (got 0)"),
        (("--corruption-runs", "0"), "'corruption_runs' must be at least 1 (got 0)"),
        (("--shallow-users", "0"), "'shallow_users' must be at least 1 (got 0)"),
        (("--users", "0"), "'users' must be at least 1 (got 0)"),
        (("--users", "-3"), "'users' must be at least 1 (got -3)"),
        (("--iterations", "0"), "'iterations' must be at least 1 (got 0)"),
        (("--users", "301"), "'users' must be at most 300"),
        (("--without", "nix"), "'--without' must name methods of this run (got 'nix'); it runs f"),
        (("--not-shallow", "nix"), "'--not-shallow' must name methods of this run (got 'nix')"),
    ],
)
def test_wrong_settings_are_refused_and_leave_nothing_behind(tmp_path, settings, said):
    assert said in refused(bench("competitors", tmp_path / "run", *settings))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("experiment", "methods", "said"),
    [
        ("regret", f"{HERE}RAISES", "RAISES', which regret does not run in profile smoke"),
        ("regret", "exact-true", "pear-exact-l alone, methods that ask, with exact-true beside"),
        ("corruption", "pear-l,fare", "it takes pear-l, pear-exact-l alone, methods that ask"),
        ("xpear", "cscf", "'methods' names 'cscf', which xpear does not run"),
        ("classifiers", "fare", "which classifiers does not run in profile smoke"),
    ],
)
def test_an_experiment_says_which_methods_it_takes(tmp_path, experiment, methods, said):
    assert said in refused(bench(experiment, tmp_path / "run", "--methods", methods))


@pytest.mark.parametrize(
    ("dataset", "said"),
    [
        ("three", "must return a World (got 3 that is a int)"),
        ("broken", "for the classifier 'network' and the users 'all' (OSError: the disk is gone)"),
        ("empty", "has no users 'all'"),
    ],
)
def test_a_data_set_that_gives_no_world_is_named(tmp_path, dataset, said):
    line = refused(bench("competitors", tmp_path, *OPTIMUM, "--datasets", HERE + dataset))
    assert f"'{HERE}{dataset}'" in line
    assert said in line


def test_an_output_that_is_no_folder_is_refused(tmp_path):
    (tmp_path / "file").write_text("mine")
    for output in (tmp_path / "file", tmp_path / "file" / "below"):
        line = refused(bench("competitors", output, *OPTIMUM))
        assert line.startswith(f"'output' must be a folder that can be written (got '{output}'")
    assert (tmp_path / "file").read_text() == "mine"


def test_a_page_that_cannot_be_written_is_refused_before_the_work(tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "images").touch()
    for page in (tmp_path, tmp_path / "file" / "page.md", tmp_path / "full" / "page.md"):
        line = refused(bench("competitors", tmp_path / "run", *OPTIMUM, "--document", str(page)))
        assert "'document'" in line
        assert f"'{page}'" in line
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("text", ['{"questions": ', "[1]", "\x00"])
def test_garbled_settings_of_a_run_are_refused_with_their_file(tmp_path, text):
    (tmp_path / "run.json").write_text(text)
    assert f"'{tmp_path / 'run.json'}' must hold the settings" in refused(
        bench("competitors", tmp_path, *OPTIMUM)
    )
    assert (tmp_path / "run.json").read_text() == text


def test_garbled_rows_are_refused_with_their_file(tmp_path):
    profile = replace(PROFILES["smoke"], users=1, chunk=1, methods=("exact-true",))
    [task] = make_tasks(profile, profile.methods)
    store = Store(tmp_path, profile)
    store.path(task).write_text("no parquet")
    with pytest.raises(InvalidData, match=r"000to001.parquet' holds no rows of a task"):
        store.read([task])


@pytest.mark.parametrize(
    ("method", "workers", "error", "said"),
    [
        ("RAISES", 1, InvalidSetting, "(KeyError: 'no such column'; test_wrong_input.py, line "),
        ("RAISES", 2, InvalidSetting, "(KeyError: 'no such column'; test_wrong_input.py, line "),
        ("REFUSES", 1, InvalidData, "the column 'age' is empty (method '"),
        ("GIVES_THREE", 1, InvalidSetting, "'int' object is not iterable"),
        ("FORGETS_USERS", 1, InvalidSetting, "gave rows of other users than 0 to 1"),
    ],
)
def test_a_method_that_fails_is_named_with_its_task(tmp_path, method, workers, error, said):
    profile = replace(PROFILES["smoke"], users=4, chunk=2, runs=1, methods=(HERE + method,))
    tasks = make_tasks(profile, profile.methods)
    with pytest.raises(error) as caught:
        run_experiments(tasks, profile, tmp_path, workers=workers)
    line = str(caught.value)
    assert said in line
    assert "\n" not in line
    assert f"'{HERE}{method}'" in line
    assert any(f"task {task.name}" in line for task in tasks)
    known = workers > 1 or method in ("REFUSES", "FORGETS_USERS")
    assert known or caught.value.__cause__ is not None


def test_a_report_without_rows_is_refused(tmp_path):
    line = refused(bench("competitors", tmp_path / "run", "--report-only"))
    assert f"'{tmp_path / 'run'}' holds no rows of competitors to report on" in line
    assert not (tmp_path / "run").exists()


def test_a_report_on_rows_of_another_experiment_is_refused(tmp_path):
    pytest.importorskip("matplotlib")
    assert bench("graphs", tmp_path).exit_code == 0
    assert "holds no rows of regret" in refused(bench("regret", tmp_path, "--report-only"))


def test_experiments_without_methods_are_left_out_and_named(tmp_path):
    page = run_suite(("competitors", "regret"), _tiny(), tmp_path, workers=1)
    assert "Left out, for lack of methods: regret." in page.read_text()
    assert "How fast does regret fall" not in page.read_text()


@pytest.mark.slow
def test_a_run_says_what_belongs_to_its_experiments_alone(tmp_path):
    ended = bench(
        "competitors",
        tmp_path,
        *OPTIMUM,
        "--datasets",
        "tests.experiments.own:small_world",
        "--users",
        "400",
    )
    assert ended.exit_code == 0, ended.exception
    said = "profile smoke (changed): the first 5 users of each set, run seed 0 to 1, 2 questions"
    assert ended.output.strip().endswith(said)
    assert "corruption" not in (tmp_path / "results.md").read_text()
    assert "| Exact, true weights | 5 × 1 |" in (tmp_path / "results/competitors.md").read_text()
    assert json.loads((tmp_path / "run.json").read_text())["questions"] == 2


@pytest.mark.parametrize(
    ("experiments", "said"),
    [
        (("graphs", "actions"), "no users and no runs, the problems alone"),
        (("competitors",), "the first 60 users of each set, run seed 0, 10 questions"),
        (("corruption",), "the first 60 users of each set, run seed 0 to 2, 10 questions"),
        (("classifiers",), "the first 30 users of each set, run seed 0, 10 questions"),
        (
            ("corruption", "classifiers"),
            "the first 60 users of each set (30 with shallow classifiers), run seed 0 "
            "(corruption: 0 to 2), 10 questions",
        ),
    ],
)
def test_words_of_some_experiments(experiments, said):
    profile = replace(PROFILES["reduced"], corruption_runs=3, shallow_users=30)
    assert profile.words(experiments) == f"profile reduced: {said}"


def test_sets_with_fewer_users_are_said():
    assert "users of each set, or all where it has fewer, run" in PROFILES["full"].words((), True)


def _tiny() -> Profile:
    return replace(PROFILES["smoke"], users=1, runs=1, methods=("exact-true",))
