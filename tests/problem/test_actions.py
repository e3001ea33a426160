"""What is allowed when, what it changes, and how it is said; batches against one by one."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pear.errors import InvalidInput, InvalidProblem
from pear.problem import Action, ActionSpace, Feature, FeatureSpace, Limits, Requirement
from tests.problem.examples import PROBLEMS, every_problem, mixed_problem, random_records

LIMITS = Limits(features=("debt",), actions=("study",), values=(("income", 2300.0),))


def allowed_one_by_one(problem, state, limits):
    """The rules of one person, move by move, as a person would read them."""
    record = problem.space.decode(state)[0]
    answers = []
    for move in range(len(problem.actions)):
        action = problem.actions.actions[problem.actions.action_of[move]]
        feature = problem.space[action.feature]
        argument = problem.actions.argument(move)
        now = record[action.feature]
        if now is None and not action.from_missing:
            answers.append(False)
            continue
        then = now + argument if action.mode == "add" else argument
        order = feature.categories.index if feature.is_categorical else float
        fine = then != now
        for bound in (feature.lower, action.lower):
            fine &= bound is None or then >= bound
        for bound in (feature.upper, action.upper):
            fine &= bound is None or then <= bound
        if now is not None:
            fine &= action.direction != "increase" or order(then) > order(now)
            fine &= action.direction != "decrease" or order(then) < order(now)
        for requirement in action.requires:
            other = record[requirement.feature]
            if other is None:
                fine = False
                continue
            fine &= not requirement.values or other in requirement.values
            fine &= requirement.lower is None or other >= requirement.lower
            fine &= requirement.upper is None or other <= requirement.upper
        fine &= action.feature not in limits.features and action.name not in limits.actions
        fine &= (action.feature, then) not in limits.values
        answers.append(bool(fine))
    return answers


@every_problem
def test_batches_agree_with_one_by_one(name):
    problem = PROBLEMS[name]()
    records = random_records(problem.space, 50, np.random.default_rng(2))
    states = problem.space.encode(records)
    batch = problem.actions.allowed(states)
    assert batch.shape == (50, len(problem.actions))
    for state, row in zip(states, batch, strict=True):
        assert row.tolist() == allowed_one_by_one(problem, state, Limits())
        assert problem.actions.allowed(state).tolist() == [row.tolist()]


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=50, deadline=None)
def test_limits_requirements_and_bounds_in_a_batch(seed):
    problem = mixed_problem()
    rng = np.random.default_rng(seed)
    records = random_records(problem.space, 20, rng)
    records[0]["income"] = 2200.0
    states = problem.space.encode(records)
    for limits in (Limits(), LIMITS):
        expected = [allowed_one_by_one(problem, state, limits) for state in states]
        assert problem.actions.allowed(states, limits).tolist() == expected


def test_apply_changes_one_feature_each():
    problem = mixed_problem()
    states = np.repeat(problem.space.encode(random_records(problem.space, 1, _rng())), 3, axis=0)
    states[:, 1] = 1000.0
    earn, wage, buy = (
        problem.actions.move("earn", 300),
        problem.actions.move("wages", 5000.0),
        problem.actions.move("buy", True),
    )
    after = problem.actions.apply(states, np.array([earn, wage, buy]))
    assert after[:, 1].tolist() == [1300.0, 5000.0, 1000.0]
    assert after[2, 5] == 1.0
    assert (states[:, 1] == 1000.0).all()
    assert np.array_equal(after[:, [0, 2, 3, 4]], states[:, [0, 2, 3, 4]], equal_nan=True)


def test_a_requirement_opens_once_another_change_is_made():
    problem = mixed_problem()
    state = problem.state(
        {"age": 30, "income": 0.0, "debt": 60, "school": "degree", "job": "clerk", "owner": False}
    )
    rise, repay = problem.actions.move("rise", "manager"), problem.actions.move("repay", -20)
    assert not problem.actions.allowed(state)[0, rise]
    later = problem.actions.apply(state[None], np.array([repay]))
    assert problem.actions.allowed(later)[0, rise]
    assert not problem.actions.allowed(later)[0, problem.actions.move("study", "degree")]


def test_steps_read_as_people_speak():
    problem = mixed_problem()
    phrase = problem.actions.phrase
    earn = problem.actions.move("earn", 400)
    assert phrase(earn, 2100.0, 2500.0) == "Increase your monthly income from €2,100 to €2,500"
    repay = problem.actions.move("repay", -5)
    assert phrase(repay, 7.0, 2.0) == "Reduce your debt from 7 to 2"
    rise = problem.actions.move("rise", "manager")
    assert phrase(rise, 0.0, 1.0) == "Change your job from clerk to manager"
    buy = problem.actions.move("buy", True)
    assert phrase(buy, 0.0, 1.0) == "Buy a home (no to yes)"


def test_templates_know_the_argument_and_the_amount():
    space = FeatureSpace(
        (
            Feature("debt", unit="€"),
            Feature("job", "categorical", categories=("a", "b")),
            Feature("own", "boolean"),
        )
    )
    actions = ActionSpace(
        space,
        (
            Action("pay", "debt", "add", (-500.0,), phrase="Pay back {amount} ({argument})"),
            Action("go", "job", "set", ("b",), phrase="Go to {argument}"),
            Action("own", "own", "set", (True,)),
        ),
    )
    assert actions.phrase(0, 1200.0, 700.0) == "Pay back €500 (-€500)"
    assert actions.phrase(1, 0.0, 1.0) == "Go to b"
    assert actions.phrase(2, 0.0, 1.0) == "Change your own from no to yes"


def test_a_phrase_names_what_is_counted_for_one_and_for_many():
    space = FeatureSpace((Feature("overdue", "integer"),))
    pay = Action("pay", "overdue", "set", (0,), phrase="Pay your {before:bill|bills}")
    actions = ActionSpace(space, (pay,))
    assert actions.phrase(0, 1.0, 0.0) == "Pay your 1 bill"
    assert actions.phrase(0, 3.0, 0.0) == "Pay your 3 bills"
    with pytest.raises(InvalidProblem, match=r"for one and for many: \{before:bill\|bills\}"):
        ActionSpace(space, (replace(pay, phrase="Pay {before:bills}"),))


def test_facts_are_one_number_or_one_for_each_argument():
    problem = mixed_problem()
    repay, study = problem.actions.move("repay", -20), problem.actions.move("study", "degree")
    assert problem.actions.facts(repay) == {"once": 20, "weeks": 4}
    assert problem.actions.facts(study) == {"monthly": 30.5}
    assert problem.actions.facts(problem.actions.move("earn", 100)) == {}
    action = problem.actions.actions[0]
    for key, wrong in (("weeks", (1, 2)), ("once", (-1,)), ("monthly", ("a lot",))):
        with pytest.raises(InvalidProblem, match=f"'{key}' must be"):
            ActionSpace(problem.space, (replace(action, **{key: wrong}),))


def test_moves_are_numbered_action_by_action():
    actions = mixed_problem().actions
    assert len(actions) == 4 + 7 + 3 + 2 + 1 + 1 + 2
    for move in range(len(actions)):
        name = actions.actions[actions.action_of[move]].name
        assert actions.move(name, actions.argument(move)) == move
    assert actions.actionable == (1, 2, 3, 4, 5)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda a: a.move("earn", 150), "action 'earn' has no argument 150; its arguments are 100"),
        (lambda a: a.move("earn", "much"), r"adds a number \(got 'much' that is a str\)"),
        (lambda a: a.move("fly", 1), "there is no action 'fly'; the actions are earn, wages"),
        (lambda a: a.move("rise", "cook"), "'job' must be one of"),
        (lambda a: a.argument(99), "there is no move 99; the moves are 0 to 19"),
        (lambda a: a.allowed(np.zeros((1, 6)), Limits(actions=("fly",))), "unknown actions: fly"),
        (lambda a: a.allowed(np.zeros((1, 6)), Limits(features=("fly",))), "no feature 'fly'"),
        (
            lambda a: a.allowed(np.zeros((1, 6)), Limits(values=(("job", "cook"),))),
            "'job' must be one of",
        ),
    ],
)
def test_unknown_names_and_values_are_refused_with_the_known_ones(ask, message):
    with pytest.raises(InvalidInput, match=message):
        ask(mixed_problem().actions)


@pytest.mark.parametrize(
    ("action", "key", "message"),
    [
        (Action("a", "age", "add", (1,)), "feature", "immutable; remove the action or the mark"),
        (Action("a", "sex", "set", (True,)), "feature", "which is protected"),
        (Action("a", "incme", "add", (1,)), "feature", "there is no feature 'incme'"),
        (Action("a", "income", "put", (1,)), "mode", "must be 'set' or 'add' .got 'put'"),
        (Action("a", "job", "add", (1,)), "mode", "cannot add to 'job'.*use mode 'set'"),
        (Action("a", "owner", "add", (1,)), "mode", "which is boolean"),
        (Action("a", "income", "add", (1,), "up"), "direction", "any, increase or decrease"),
        (Action("a", "job", "set", ("clerk",), "increase"), "direction", "have no order"),
        (Action("a", "income", "add", ()), "arguments", "has no arguments; give a list"),
        (Action("a", "income", "add", (0,)), "arguments", "other than 0 .got 0"),
        (Action("a", "income", "add", (True,)), "arguments", "other than 0 .got True"),
        (Action("a", "income", "add", (float("nan"),)), "arguments", "got nan"),
        (Action("a", "debt", "add", (0.5,)), "arguments", "0.5 is not whole; round it"),
        (Action("a", "income", "set", (-5.0,)), "arguments", "must be at least 0"),
        (Action("a", "job", "set", ("cook",)), "arguments", "must be one of clerk"),
        (Action("a", "income", "add", (1, 1.0)), "arguments", "lists an argument twice .got 1"),
        (Action("a", "owner", "set", (True, "yes")), "arguments", "twice"),
        (Action("a", "income", "add", (1,), lower="x"), "lower", "must be a finite number"),
        (Action("a", "income", "add", (1,), lower=3, upper=2), "lower", "above 'upper' 2; swap"),
        (Action("a", "job", "set", ("clerk",), upper=1), "upper", "list the values instead"),
        (Action("a", "income", "add", (1,), phrase="{now}"), "phrase", "unknown field .now.; use"),
        (Action("a", "income", "add", (1,), phrase="{before.real}"), "phrase", "unknown field"),
        (Action("a", "income", "add", (1,), phrase="{before"), "phrase", "cannot be read"),
        (Action("a", "income", "add", (1,), phrase=3), "phrase", "must be a text .got 3"),
        (
            Action("a", "income", "add", (1,), requires=(Requirement("job"),)),
            "requires",
            "'job' says nothing; give values or a range",
        ),
        (
            Action("a", "income", "add", (1,), requires=(Requirement("job", ("cook",)),)),
            "requires",
            "must be one of clerk",
        ),
        (
            Action("a", "income", "add", (1,), requires=(Requirement("job", lower=1),)),
            "requires",
            "list the values instead",
        ),
        (
            Action("a", "income", "add", (1,), requires=(Requirement("cat", ("x",)),)),
            "requires",
            "there is no feature 'cat'",
        ),
        (
            Action("a", "income", "add", (1,), requires=(Requirement("income", lower=1),)),
            "requires",
            "its own 'income'; name another feature",
        ),
    ],
)
def test_an_action_that_makes_no_sense_is_refused(action, key, message):
    space = FeatureSpace(
        (*mixed_problem().space.features, Feature("sex", "boolean", protected=True))
    )
    with pytest.raises(InvalidProblem, match=message) as refusal:
        ActionSpace(space, (action,))
    assert refusal.value.key == key


def test_a_space_needs_actions_with_different_names():
    space = mixed_problem().space
    with pytest.raises(InvalidProblem, match="at least one action"):
        ActionSpace(space, ())
    twice = Action("earn", "income", "add", (1,))
    with pytest.raises(InvalidProblem, match=r"must differ \(twice: earn\)"):
        ActionSpace(space, (twice, twice))
    with pytest.raises(InvalidProblem, match="'name' must be a text"):
        ActionSpace(space, (Action("", "income", "add", (1,)),))
    with pytest.raises(InvalidProblem, match=r"'arguments' must be a list .*; put it in brackets"):
        Action("earn", "income", "add", 5)


def _rng():
    return np.random.default_rng(0)


def test_a_step_from_a_missing_value_only_where_the_action_says_so():
    problem = mixed_problem()
    record = {
        "age": 30, "income": 2100.0, "debt": None, "school": "degree", "job": "clerk",
        "owner": False,
    }  # fmt: skip
    state = problem.space.encode(record)
    allowed = problem.actions.allowed(state)[0]
    names = {
        problem.actions.actions[problem.actions.action_of[m]].name for m in allowed.nonzero()[0]
    }
    # 'repay' cannot add to what is missing, 'rise' needs a debt that is known.
    assert names == {"earn", "wages", "buy", "declare"}
    move = problem.actions.move("declare", 10)
    after = problem.actions.apply(state, np.array([move]))
    assert problem.space.decode(after)[0]["debt"] == 10
    phi = problem.costs.features(state, problem.actions, np.array([move]))[0]
    assert phi[2] == pytest.approx(0.1)  # from what missing_counts_as says: 0 of 100


@pytest.mark.parametrize(
    ("mode", "missing", "mark", "message"),
    [
        ("set", None, True, "'x' is never missing; remove it"),
        ("add", 0.0, True, "nothing can be added to a missing value"),
        ("set", 0.0, "yes", "'from_missing' must be true or false"),
    ],
)
def test_an_action_from_a_missing_value_must_make_sense(mode, missing, mark, message):
    space = FeatureSpace((Feature("x", missing_counts_as=missing),))
    with pytest.raises(InvalidProblem, match=message):
        ActionSpace(space, (Action("a", "x", mode, (1.0,), from_missing=mark),))


def test_no_step_leads_to_a_missing_value():
    space = FeatureSpace((Feature("x", missing_counts_as=0.0),))
    with pytest.raises(InvalidProblem, match="no step leads to a missing value"):
        ActionSpace(space, (Action("a", "x", "set", (None,)),))
