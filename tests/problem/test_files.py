"""``problem.toml``: exact round trips, and refusals that name key, value and remedy."""

import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pear.errors import InvalidProblem, InvalidSetting
from pear.problem.files import (
    load_problem,
    model_location,
    prior_location,
    problem_from_toml,
    problem_to_toml,
    write_problem,
    write_text,
)
from pear.problem.schema import ALL_KEYS, expand_grid, shorten_grid, toml_line, toml_value
from tests.problem.examples import PROBLEMS, every_problem, mixed_problem

SMALL = """
[features.income]
kind = "numeric"
lower = 0
[features.job]
kind = "categorical"
categories = ["clerk", "manager"]
[actions.earn]
feature = "income"
mode = "add"
arguments = [100]
"""


@every_problem
def test_the_problem_of_every_data_set_comes_back_exactly(name, tmp_path):
    problem = PROBLEMS[name]()
    write_problem(problem, tmp_path / "problem.toml")
    read = load_problem(tmp_path / "problem.toml")
    assert read == problem
    assert read.fingerprint == problem.fingerprint
    assert problem_to_toml(read) == problem_to_toml(problem)


def test_every_kind_of_declaration_comes_back_exactly():
    problem = mixed_problem()
    text = problem_to_toml(problem)
    read = problem_from_toml(text)
    assert read == problem
    assert read.fingerprint == problem.fingerprint
    assert read.weight_range == problem.weight_range
    for one, other in zip(read.actions.actions, problem.actions.actions, strict=True):
        assert [type(x) for x in one.arguments] == [type(x) for x in other.arguments]
    assert "arguments = { from = 100, to = 400, step = 100 }" in text
    assert "arguments = { from = 0.0, to = 5000.0, count = 7 }" in text
    assert 'floor = "none"' in text
    local = replace(problem, model="", prior="", archetypes=(), weight_range={})
    assert problem_from_toml(problem_to_toml(local)) == local
    remote = replace(problem, model="https://models.example/score")
    assert problem_from_toml(problem_to_toml(remote)) == remote


def test_every_key_of_the_format_is_used_by_the_round_trip_above():
    data = tomllib.loads(problem_to_toml(mixed_problem()))
    used = {
        "": {*data},
        "goal": {*data["goal"]},
        "features.NAME": {key for table in data["features"].values() for key in table},
        "actions.NAME": {key for table in data["actions"].values() for key in table},
        "actions.NAME.requires": {
            key
            for table in data["actions"].values()
            for entry in table.get("requires", ())
            for key in entry
        },
        "costs": {*data["costs"]},
        "weights": {*data["weights"]},
        "archetypes": {*data["archetypes"][0]},
        "model": {*data["model"]},
        "model.inputs.NAME": {key for table in data["model"]["inputs"].values() for key in table},
        "prior": {*data["prior"]},
        "asked": {*data["asked"]},
        "words.LANGUAGE": {*data["words"]["de"]},
    }
    unused = {f"{table}.{key}" for table, keys in ALL_KEYS.items() for key in keys} - {
        f"{table}.{key}" for table, keys in used.items() for key in keys
    }
    # An even order needs no levels, a requirement has a range or not, a model one place.
    assert unused == {"features.NAME.levels", "actions.NAME.requires.lower", "model.url"}


def test_defaults_are_those_of_the_classes():
    problem = problem_from_toml(SMALL)
    assert problem == problem_from_toml(problem_to_toml(problem))
    assert (problem.costs.floor, problem.costs.offset, problem.max_length) == (1.0, 1.0, 5)
    assert (problem.goal.threshold, problem.default_range) == (0.5, (1.0, 100.0))
    assert problem.space.names == ("income", "job")


def test_uneven_levels_are_kept():
    text = SMALL.replace('"manager"]', '"manager"]\nordered = true\nlevels = [0.1, 0.7]')
    problem = problem_from_toml(text)
    assert problem.space["job"].levels == (0.1, 0.7)
    assert problem_from_toml(problem_to_toml(problem)) == problem


def test_one_spread_may_stand_for_all_weights():
    archetype = '[[archetypes]]\nname = "a"\nspread = 2\nmean = { income = 3, job = 4 }'
    [read] = problem_from_toml(SMALL + archetype).archetypes
    assert (read.mean, read.spread, read.share) == ((3, 4), (2, 2), 1.0)


def test_zero_is_left_out_of_a_range_of_amounts():
    text = SMALL.replace("[100]", "{ from = -200, to = 200, step = 100 }")
    assert problem_from_toml(text).actions.actions[0].arguments == (-200, -100, 100, 200)


@pytest.mark.parametrize(
    ("old", "new", "path", "message"),
    [
        ("lower = 0", "lowr = 0", "features.income.lowr", r"\(got 0\); did you mean 'lower'"),
        ("lower = 0", "colour = 0", "features.income.colour", "the keys are kind, label"),
        (
            "lower = 0",
            'lower = "0"',
            "features.income.lower",
            "finite number .got '0' that is a str",
        ),
        ("lower = 0", "lower = true", "features.income.lower", "a finite number .got True"),
        ("lower = 0", "lower = nan", "features.income.lower", "finite number .got nan"),
        ("lower = 0", "lower = 2\nupper = 1", "features.income.lower", "swap them"),
        (
            "lower = 0",
            "scale = [1, 2, 3]",
            "features.income.scale",
            "list of two increasing n",
        ),
        (
            "lower = 0",
            "missing_counts_as = -1\nlower = 0",
            "features.income.missing_counts_as",
            "at least 0",
        ),
        ("lower = 0", "missing = 1", "features.income.missing", "Write 'missing_counts_as'"),
        ('kind = "numeric"', "", "features.income.kind", "is missing .got lower.; it must be"),
        ('kind = "numeric"', 'kind = "number"', "features.income.kind", "one of numeric"),
        ('["clerk", "manager"]', "[1, 2]", "features.job.categories", "be texts .got 1 that"),
        ('["clerk", "manager"]', '["a", "a"]', "features.job.categories", "each category once"),
        ('mode = "add"', 'mode = "put"', "actions.earn.mode", "'set' or 'add' .got 'put'"),
        ('mode = "add"', "", "actions.earn.mode", "is missing"),
        ('feature = "income"', 'feature = "pay"', "actions.earn.feature", "features are income"),
        ("[100]", "[]", "actions.earn.arguments", "give a list, a range"),
        ("[100]", "100", "actions.earn.arguments", "must be a list, or a range"),
        (
            "[100]",
            "[[100]]",
            "actions.earn.arguments",
            r"other than 0 \(got \[100",
        ),
        ("[100]", '["much"]', "actions.earn.arguments", "a number other than 0 .got 'much'"),
        ("[100]", "{ from = 1 }", "actions.earn.arguments", "one of step and count .got from"),
        (
            "[100]",
            "{ from = 1, to = 2, step = 1, count = 2 }",
            "actions.earn.arguments",
            "one of step and count",
        ),
        ("[100]", "{ from = 1, to = 9, step = 0 }", "actions.earn.arguments", "leads from 1 to 9"),
        ("[100]", "{ from = 9, to = 1, step = 1 }", "actions.earn.arguments", "change its sign"),
        ("[100]", "{ from = 1, to = 1e9, step = 1 }", "actions.earn.arguments", "larger 'step'"),
        ("[100]", "{ from = 1, to = 9, count = 1 }", "actions.earn.arguments", "a whole 'count'"),
        ("[100]", "{ from = 1, to = 1, count = 3 }", "actions.earn.arguments", "different ends"),
        (
            "[100]",
            '{ from = 1, to = "x", step = 3 }',
            "actions.earn.arguments",
            "for 'to' .got 'x'",
        ),
        ("[100]", "{ from = 1, till = 3 }", "actions.earn.arguments", "unknown key 'till' .got 3"),
        (
            "[100]",
            '[100]\nrequires = [{ feature = "job", value = ["clerk"] }]',
            "actions.earn.requires.0.value",
            "did you mean 'values'",
        ),
        (
            "[100]",
            '[100]\nrequires = [{ feature = "job", values = ["cook"] }]',
            "actions.earn.requires",
            "must be one of clerk, manager .got 'cook'",
        ),
        ("[100]", '[100]\nphrase = "{now}"', "actions.earn.phrase", "unknown field"),
        ("[100]", "[100]\n[costs]\nfloor = false", "costs.floor", "a number, or none .got False"),
        (
            "[100]",
            '[100]\n[costs]\nedges = ["a"]',
            "costs.edges",
            "pair of parent and child .got 'a'",
        ),
        ("[100]", '[100]\n[costs]\nedges = [["job", "pay"]]', "costs.edges", "no feature 'pay'"),
        ("[100]", '[100]\n[costs]\nedges = [["job", "job"]]', "costs.edges", "cycle: job -> job"),
        ("[100]", "[100]\n[goal]\nthreshold = 2", "goal.threshold", r"in \[0, 1\) \(got 2\)"),
        ("[100]", '[100]\n[goal]\nfavourable = "yes"', "goal.favourable", "a list of classes"),
        ("[100]", "[100]\n[weights]\ndefault = [2, 1]", "weights.default", "must increase"),
        (
            "[100]",
            "[100]\n[weights.ranges]\nincome = [2, 1]",
            "weights.ranges.income",
            "must increase",
        ),
        (
            "[100]",
            '[100]\n[weights.ranges]\n"job->income" = [1, 2]',
            'weights.ranges."job->income"',
            "there is no weight 'job->income'; the weights are income, job",
        ),
        ("[100]", '[100]\n[model]\npath = "https://x"', "model.path", "use 'url' for the other"),
        ("[100]", '[100]\n[model]\nurl = "net.onnx"', "model.url", "use 'path' for the other"),
        ("[100]", "[100]\n[model]", "model", "either 'path' or 'url' .got neither"),
        ("[100]", "[100]\n[prior]", "prior.path", "is missing .got nothing"),
        (
            "[100]",
            '[100]\n[[archetypes]]\nname = "a"\nspread = 1\nmean = { income = 1 }',
            "archetypes.0.mean.job",
            "is missing .got 1 of 2 weights.; give every weight",
        ),
        (
            "[100]",
            '[100]\n[[archetypes]]\nname = "a"\nspread = 1\nmean = { pay = 1 }',
            "archetypes.0.mean.pay",
            "no such weight .got 1",
        ),
        (
            "[100]",
            '[100]\n[[archetypes]]\nname = "a"\nspread = 1\nmean = { income = "x", job = 1 }',
            "archetypes.0.mean",
            r"must be finite numbers \(got \('x', 1",
        ),
        (
            "[100]",
            '[100]\n[[archetypes]]\nname = "a"\nspread = -1\nmean = { income = 1, job = 1 }',
            "archetypes.0.spread",
            "must be positive",
        ),
        ("lower = 0", f"lower = 1{'0' * 400}", "features.income.lower", "a finite number"),
        ("lower = 0", "scale = [-1e308, 1e308]", "features.income.scale", "two increasing"),
        (
            "[100]",
            '[100]\ndirection = "decrease"',
            "actions.earn.arguments",
            r"'direction' is 'decrease', but every amount \(the first is 100\) goes the other way",
        ),
        ("[100]", "[100]\nupper = -5", "actions.earn.upper", "'lower' 0 and 'upper' -5 of the act"),
        (
            'mode = "add"\narguments = [100]',
            'mode = "set"\narguments = [100]\nupper = 50',
            "actions.earn.arguments",
            r"every argument \(the first is 100\) lies outside of the action's bounds, 0 to 50",
        ),
        ("[100]", "[100]\n[goal]\nfavourable = [1, true]", "goal.favourable", "a class twice"),
        ("[100]", '[100]\n[model]\npath = ""', "model.path", "is empty"),
        ("[features.income]", "max_length = 0\n[features.income]", "max_length", "at least 1"),
        ("[features.income]", "max_length = 1.5\n[features.income]", "max_length", "a whole num"),
        ("[features.income]", "format = 2\n[features.income]", "format", "must be 1 .got 2"),
        ("lower = 0", "label = 3", "features.income.label", "must be a text .got 3 that is an int"),
        ("lower = 0", "used = 1", "features.income.used", "must be true or false"),
        ("lower = 0", "levels = 1", "features.income.levels", "must be a list .got 1"),
        ("lower = 0", "missing_counts_as = []", "features.income.missing_counts_as", "a number"),
        ('kind = "numeric"', "kind = [1]", "features.income.kind", "must be one of numeric"),
        ('mode = "add"', "mode = 3", "actions.earn.mode", "'set' or 'add' .got 3"),
        ('feature = "income"', "feature = []", "actions.earn.feature", "features are income"),
        ("[100]", "[100]\ndirection = []", "actions.earn.direction", "any, increase or decrease"),
        ("[100]", "[100]\nfrom_missing = 1", "actions.earn.from_missing", "true or false"),
        ("[100]", '[100]\nweeks = "two"', "actions.earn.weeks", "must be a list .got 'two'"),
        ("[100]", '[100]\nonce = ["two"]', "actions.earn.once", "at least 0 .got 'two'"),
        ("[100]", "[100]\nphrase = 3", "actions.earn.phrase", "must be a text .got 3"),
        ("[100]", "[100]\npriority = 1.5", "actions.earn.priority", "a whole number .got 1.5"),
        ("[100]", "[100]\nrequires = 3", "actions.earn.requires", "must be a list of tables"),
        ("[100]", "[100]\nrequires = [3]", "actions.earn.requires.0", "must be a table .got 3"),
        (
            "[100]",
            '[100]\nrequires = [{ feature = "job", values = "clerk" }]',
            "actions.earn.requires.0.values",
            "must be a list .got 'clerk'",
        ),
        ("[100]", "[100]\n[costs]\nedges = 3", "costs.edges", "must be a list of"),
        ("[100]", '[100]\n[costs]\noffset = "x"', "costs.offset", "must be a number .got 'x'"),
        ("[100]", '[100]\n[goal]\nthreshold = "x"', "goal.threshold", r"in \[0, 1\) .got 'x'"),
        ("[100]", "[100]\n[goal]\nfavourable = [[1]]", "goal.favourable", "a text or a number"),
        ("[100]", "[100]\n[goal]\ntarget = 3", "goal.target", "must be a text .got 3"),
        ("[100]", "[100]\n[weights]\ndefault = 3", "weights.default", "two numbers .got 3"),
        ("[100]", "[100]\n[weights]\nranges = 3", "weights.ranges", "must be a table .got 3"),
        ("[100]", "[100]\n[model]\npath = 3", "model.path", "must be a text .got 3"),
        ("[100]", "[100]\n[model]\nclasses = 3", "model.classes", "must be a list .got 3"),
        ("[100]", "[100]\n[model]\nclasses = [[1]]", "model.classes", "a text or a number"),
        ("[100]", "[100]\n[model]\noutput = 3", "model.output", "probabilities or logits"),
        ("[100]", "[100]\n[model.inputs]\na = 3", "model.inputs.a", "must be a table .got 3"),
        (
            "[100]",
            "[100]\n[model.inputs]\nincome = { clip = 1 }",
            "model.inputs.income.clip",
            "must be true or false .got 1",
        ),
        ("[100]", "[100]\n[prior]\npath = 3", "prior.path", "must be a text .got 3"),
        ("[100]", '[100]\n[asked]\namount = ""', "asked.amount", "a feature that is a number"),
        ("[100]", "[100]\n[asked]\namount = []", "asked.amount", "a feature that is a number"),
        ("[100]", "[100]\n[words]\nde = 3", "words.de", "must be a table .got 3"),
        ("[100]", "[100]\n[words.de]\nlabels = 3", "words.de.labels", "must be a table .got 3"),
        (
            "[100]",
            "[100]\n[words.de.labels]\nincome = 3",
            "words.de.labels",
            "'income' must be a text .got 3",
        ),
        (
            "[100]",
            "[100]\n[words.de.categories]\njob = 3",
            "words.de.categories.job",
            "must be a table of texts .got 3",
        ),
        (
            "[100]",
            "[100]\n[[archetypes]]\nname = 3\nspread = 1\nmean = { income = 1, job = 1 }",
            "archetypes.0.name",
            "must be a text .got 3",
        ),
        ("[features.income]", "name = 3\n[features.income]", "name", "must be a text .got 3"),
        ("[features.income]", "archetypes = 3\n[features.income]", "archetypes", "a list of tab"),
    ],
)
def test_a_mistake_is_refused_by_the_path_of_its_key(old, new, path, message):
    assert SMALL.count(old) == 1
    with pytest.raises(InvalidProblem, match=message) as refusal:
        problem_from_toml(SMALL.replace(old, new))
    assert str(refusal.value).startswith(path)
    assert str(refusal.value).count(f"{path}:") <= 1


def test_what_is_no_problem_at_all_is_refused(tmp_path):
    with pytest.raises(InvalidProblem, match=r"not TOML: .*line 1"):
        problem_from_toml("features = [!]")
    for endless in ("a = " + "[" * 5_000, "a = 1" + "0" * 5_000):
        with pytest.raises(InvalidProblem, match="not TOML"):
            problem_from_toml(endless)
    with pytest.raises(InvalidProblem, match=r"features must be a table \(got 3 that is an int\)"):
        problem_from_toml("features = 3")
    with pytest.raises(InvalidProblem, match="features is missing"):
        problem_from_toml("")
    with pytest.raises(InvalidProblem, match="features: a problem needs at least one feature"):
        problem_from_toml("[features]\n[actions]")
    with pytest.raises(InvalidProblem, match="actions: a problem needs at least one action"):
        problem_from_toml('[features.a]\nkind = "numeric"\n[actions]')
    with pytest.raises(InvalidProblem, match=r"features.a must be a table .got 3"):
        problem_from_toml("[features]\na = 3\n[actions]")
    with pytest.raises(InvalidProblem, match=r"there is no file 'none.toml'; 'pear init'"):
        load_problem("none.toml")
    with pytest.raises(InvalidProblem, match="cannot be read as text"):
        load_problem(tmp_path)
    (tmp_path / "latin.toml").write_bytes(b'name = "caf\xe9"')
    with pytest.raises(InvalidProblem, match="cannot be read as text"):
        load_problem(tmp_path / "latin.toml")
    (tmp_path / "bad.toml").write_text(SMALL.replace("lower", "lowr"))
    with pytest.raises(InvalidProblem, match=r"^bad.toml: features.income.lowr is not a key"):
        load_problem(tmp_path / "bad.toml")


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    file = tmp_path / "problem.toml"
    write_text("old", file)

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(InvalidSetting, match=r"cannot be written \(No space left"):
        write_text("new", file)
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]
    with pytest.raises(InvalidSetting, match="give another place"):
        write_text("new", tmp_path / "no" / "such" / "folder.toml")


def test_references_are_relative_to_the_file():
    problem = mixed_problem()
    assert Path(model_location(problem, "there/problem.toml")) == Path("there/models/net.onnx")
    assert Path(prior_location(problem, "there/problem.toml")) == Path("there/prior.json")
    bare = replace(problem, model="", prior="")
    assert model_location(bare, "p.toml") is None
    assert prior_location(bare, "p.toml") is None
    remote = replace(problem, model="http://models.example/score")
    assert model_location(remote, "there/p.toml") == "http://models.example/score"


numbers = st.one_of(
    st.integers(-(10**6), 10**6), st.floats(-1e6, 1e6, allow_nan=False, allow_infinity=False)
)


@given(st.lists(st.one_of(numbers, st.text(), st.booleans()), max_size=12))
@settings(deadline=None)
def test_any_list_of_values_is_written_and_read_exactly(values):
    text = toml_line("key", values)
    read = tomllib.loads(text)["key"]
    assert read == values
    assert [type(x) for x in read] == [type(x) for x in values]


@given(
    numbers, st.one_of(st.integers(-50, 50), st.sampled_from([0.1, 0.25, -0.3])), st.integers(2, 30)
)
def test_any_grid_is_shortened_without_loss(first, step, n):
    stepped = [first + i * step for i in range(n)]
    even = np.linspace(0.0, float(first) + 1.5, n).tolist()
    for values in (stepped, even, [first, "text", True]):
        read = list(expand_grid(shorten_grid(values)))
        assert read == values
        assert [type(x) for x in read] == [type(x) for x in values]


def test_steps_are_added_in_decimal():
    assert expand_grid({"from": 0.1, "to": 0.5, "step": 0.1}) == (0.1, 0.2, 0.3, 0.4, 0.5)
    assert expand_grid({"from": 0, "to": 10, "step": 3}) == (0, 3, 6, 9)
    assert expand_grid({"from": 3, "to": 1, "step": -1}) == (3, 2, 1)
    assert shorten_grid((0.1, 0.2, 0.3, 0.4)) == {"from": 0.1, "to": 0.4, "step": 0.1}
    assert shorten_grid(("a", "b", "c", "d")) == ["a", "b", "c", "d"]


def test_numpy_values_are_written_as_their_python_values_and_others_refused():
    assert toml_value([np.float64(0.1), np.int64(3), np.bool_(True)]) == "[0.1, 3, true]"
    with pytest.raises(TypeError, match="an object cannot be written as TOML"):
        toml_value(object())
