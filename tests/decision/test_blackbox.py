"""The black box: what it counts, what it refuses, and which class it takes as favourable."""

import pickle
import threading

import numpy as np
import pytest

from pear.decision import BlackBox, from_callable
from pear.decision.blackbox import favourable_columns, probe_states
from pear.errors import EndpointFailed, ModelOutput
from pear.problem import Feature, FeatureSpace, Goal, Limits
from pear.problem.values import class_key

from .conftest import SPACE, make_problem


def income_share(states):
    return states[:, 0] / 5_000


def test_every_row_asked_is_counted_and_probes_are_not(problem, states):
    model = from_callable(income_share, problem, "income")
    assert model.rows == 0
    model.score(states)
    model.favourable(states[:7])
    assert model.rows == len(states) + 7


def test_rows_asked_by_several_threads_are_all_counted(problem, states):
    model = from_callable(income_share, problem)
    workers = [
        threading.Thread(target=lambda: [model.score(states[:2]) for _ in range(200)])
        for _ in range(4)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert model.rows == 4 * 200 * 2


def test_large_batches_are_split_and_joined_in_order(problem, states):
    seen = []

    def watched(batch):
        seen.append(len(batch))
        return income_share(batch)

    model = BlackBox(watched, SPACE, Goal(), max_batch=64, fingerprint="known")
    assert np.array_equal(model.score(states), income_share(states))
    assert seen == [64, 64, 64, 8]


def test_no_states_no_scores(problem):
    assert from_callable(income_share, problem).score(np.zeros((0, 5))).shape == (0,)


def test_a_score_on_the_threshold_is_refused_and_a_margin_raises_the_bar(problem):
    model = from_callable(income_share, problem)
    people = np.zeros((3, 5))
    people[:, 0] = [2_500, 2_501, 3_100]
    assert model.favourable(people).tolist() == [False, True, True]
    assert model.favourable(people, Limits(margin=0.1)).tolist() == [False, False, True]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            lambda s: np.where(np.arange(len(s)) == 3, np.nan, 0.5),
            r"'odd' returned \[nan\] for row 3",
        ),
        (lambda s: np.where(np.arange(len(s)) == 1, 1.2, 0.5), r"\[1.2\] for row 1 .*in \[0, 1\]"),
        (lambda s: np.where(np.arange(len(s)) == 2, -0.1, 0.5), r"\[-0.1\] for row 2"),
        (lambda s: np.full(len(s), np.inf), "for row 0"),
        (lambda s: np.full((len(s) + 1), 0.5), r"'odd' returned shape \(6,\) for 5 rows"),
        (lambda s: np.full((len(s), 2, 2), 0.5), r"shape \(5, 2, 2\)"),
        (lambda s: 0.5, r"shape \(\)"),
        (lambda s: ["high"] * len(s), "'odd' failed on row 0"),
    ],
)
def test_what_is_no_score_is_refused_naming_model_and_row(wrong, message, states):
    model = BlackBox(wrong, SPACE, Goal(), name="odd", fingerprint="known")
    with pytest.raises(ModelOutput, match=message):
        model.score(states[:5])


def test_the_row_named_counts_from_the_whole_batch(states):
    def dislikes_the_rich(batch):
        return np.where(batch[:, 0] > 4_000, np.nan, 0.5)

    model = BlackBox(dislikes_the_rich, SPACE, Goal(), max_batch=16, fingerprint="known")
    first = int(np.flatnonzero(states[:, 0] > 4_000)[0])
    with pytest.raises(ModelOutput, match=f"for row {first} "):
        model.score(states)


def test_a_model_that_fails_is_reported_with_the_row_it_failed_on(states):
    def only_rome(batch):
        if (batch[:, 4] == 1).any():
            raise ValueError("unknown category 'Trento'")
        return np.full(len(batch), 0.5)

    model = BlackBox(only_rome, SPACE, Goal(), name="Roman", fingerprint="known")
    row = int(np.flatnonzero(states[:, 4] == 1)[0])
    with pytest.raises(ModelOutput, match=rf"'Roman' failed on row {row} .*unknown category"):
        model.score(states)


def test_errors_of_our_own_pass_through_unchanged(states):
    def down(batch):
        raise EndpointFailed("no answer")

    with pytest.raises(EndpointFailed, match="no answer"):
        BlackBox(down, SPACE, Goal(), fingerprint="known").score(states)


def test_rounding_a_little_outside_is_forgiven(states):
    model = BlackBox(lambda s: np.full(len(s), 1 + 1e-9), SPACE, Goal())
    assert (model.score(states) == 1.0).all()


@pytest.mark.parametrize(
    ("goal", "classes", "width", "columns"),
    [
        (Goal(), (), 2, [1]),
        (Goal(), ("no", "yes"), 2, [1]),
        (Goal(favourable=("no",)), ("no", "yes"), 2, [0]),
        (Goal(favourable=("a", "c")), ("a", "b", "c"), 3, [0, 2]),
        (Goal(favourable=(1,)), (0.0, 1.0), 2, [1]),
        (Goal(favourable=("true",)), (False, True), 2, [1]),
        (Goal(favourable=(2,)), (), 3, [2]),
    ],
)
def test_columns_of_the_favourable_classes(goal, classes, width, columns):
    assert favourable_columns(goal, classes, width, "m") == columns


@pytest.mark.parametrize(
    ("goal", "classes", "width", "message"),
    [
        (Goal(), (), 3, "say in the problem's goal which"),
        (Goal(favourable=("best",)), ("a", "b"), 2, "has no class 'best'; its classes are a, b"),
        (Goal(favourable=("best",)), (), 3, "not say which of its 3 columns is the class 'best'"),
        (Goal(favourable=("good",)), (), 2, "not say which of its 2 columns is the class 'good'"),
        (Goal(favourable=(2,)), (), 2, "not say which of its 2 columns is the class 2"),
        (Goal(), ("a", "b", "c"), 2, "2 columns for the 3 classes a, b, c"),
    ],
)
def test_classes_that_do_not_fit_are_refused(goal, classes, width, message):
    with pytest.raises(ModelOutput, match=message):
        favourable_columns(goal, classes, width, "m")


def test_a_wrong_favourable_class_is_refused_when_the_model_is_wrapped():
    with pytest.raises(ModelOutput, match="no class 'gold'"):
        BlackBox(income_share, SPACE, Goal(favourable=("gold",)), classes=("a", "b"))


def test_probabilities_of_favourable_classes_are_added(states):
    shares = np.array([0.2, 0.5, 0.3])
    goal = Goal(favourable=("silver", "gold"))
    model = BlackBox(
        lambda s: np.tile(shares, (len(s), 1)), SPACE, goal, classes=("none", "silver", "gold")
    )
    assert model.score(states[:1]) == pytest.approx([0.8])


def test_spellings_of_one_class_have_one_key():
    assert {class_key(v) for v in (True, 1, 1.0, "1", "true", np.int64(1))} == {1.0}
    assert class_key(" >50K ") == ">50K"


def test_equal_models_share_a_fingerprint_and_others_do_not(problem):
    first = from_callable(income_share, problem)
    again = from_callable(lambda s: np.float32(s[:, 0]) / np.float32(5_000), problem)
    other = from_callable(lambda s: s[:, 0] / 5_100, problem)
    assert first.fingerprint == again.fingerprint != other.fingerprint


def test_a_black_box_pickles_with_its_count(problem, states):
    model = from_callable(income_share, problem)
    model.score(states)
    copy = pickle.loads(pickle.dumps(model))
    assert copy.rows == model.rows
    assert copy.fingerprint == model.fingerprint
    assert np.array_equal(copy.score(states), model.score(states))


def test_probes_lie_within_the_bounds_of_every_feature():
    space = FeatureSpace(
        (
            Feature("a", lower=3),
            Feature("b", upper=-2),
            Feature("c", "integer", 12, 84, (0, 84)),
            Feature("d", scale=(5, 6)),
        )
    )
    probes = probe_states(space, 500, np.random.default_rng(0))
    space.encode(space.frame(probes))
    assert (np.ptp(probes, axis=0) > 0.5).all()


def test_the_goal_of_the_problem_is_used(states):
    strict = from_callable(income_share, make_problem(Goal(threshold=0.9)))
    assert strict.favourable(states).sum() == (income_share(states) > 0.9).sum()


def test_making_one_asks_the_model_nothing_until_it_must():
    asked = []

    def watched(states):
        asked.append(len(states))
        return np.full(len(states), 0.25)

    model = BlackBox(watched, SPACE, Goal())
    assert repr(model) == "BlackBox('model', 0 rows asked)"
    assert asked == []
    assert model.fingerprint == model.fingerprint
    assert (asked, model.rows) == ([256], 0)
