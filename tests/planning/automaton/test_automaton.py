"""Automata on a problem with one obvious rule, and their reasons on random people."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.planning.automaton.rules import draw_weights, rule_people, rule_problem, trained
from tests.planning.small_problems import random_people, small_model, small_problem

from pear.errors import FingerprintMismatch, InvalidData, InvalidSetting
from pear.planning.automaton import (
    Automaton,
    AutomatonPlanner,
    automaton_from_plans,
    train_automaton,
)
from pear.planning.automaton.automaton import START
from pear.planning.evolution import EvolutionPlanner
from pear.planning.exact import ExactPlanner
from pear.problem import Limits, walk


def test_it_finds_the_obvious_rule():
    # Those with a debt above 50 must repay, and only they; everybody must have an income of 60.
    problem, model, automaton = trained(aware=False)
    planner = AutomatonPlanner(automaton, model)
    for state in rule_people(60, seed=1):
        plan = planner.plan(state, np.array([20.0, 5.0, 90.0, 1.0]))
        assert plan.success == model.favourable(walk(state, problem.actions, plan.moves)[-1:])[0]
        assert plan.success
        assert ("repay" in [step.action for step in plan.steps]) == (state[0] > 50)
        for step in plan.steps:
            if step.action == "repay":
                assert "your debt is above 50 €" in step.reason
    first = automaton.trees[START]
    assert automaton.inputs.columns[first.column[0]].place == problem.space.index("debt")
    assert first.threshold[0] == 50.0


def test_a_user_aware_automaton_follows_what_is_cheap_for_the_person():
    _, model, automaton = trained()
    planner = AutomatonPlanner(automaton, model)
    state = np.array([10.0, 30.0, 0.0, 1.0])
    worker = planner.plan(state, np.array([20.0, 400.0, 10.0, 1.0]))
    earner = planner.plan(state, np.array([20.0, 5.0, 90.0, 1.0]))
    assert [step.action for step in worker.steps] == ["find work"]
    assert [step.action for step in earner.steps] == ["earn"]
    assert "changing your" in worker.steps[0].reason
    assert "cheap" in worker.steps[0].reason or "costly" in worker.steps[0].reason


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6))
def test_every_reason_shown_is_true_of_the_state_it_is_given_for(seed):
    problem, model, automaton = trained()
    rng = np.random.default_rng(seed)
    state = rule_people(1, seed)[0]
    state[2] = rng.integers(0, 3)
    samples = rng.uniform(0, 120, (int(rng.integers(1, 4)), 4))
    planner = AutomatonPlanner(automaton, model)
    plan = planner.plan(state, samples)
    reasons = planner.reasons(state, samples, plan.moves)
    before = walk(state, problem.actions, plan.moves)
    for step, reason, at in zip(plan.steps, reasons, before, strict=False):
        for condition in reason.conditions:
            assert condition.holds(automaton.inputs, at, samples)
            assert condition.words(problem) in step.reason


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 4))
def test_conditions_hold_for_exactly_those_who_come_to_the_node(seed, pick):
    _, _, automaton = trained()
    rng = np.random.default_rng(seed)
    state = rule_people(1, seed)[0]
    state[2] = rng.integers(0, 3)
    weights = rng.uniform(0, 120, (1, 4))
    node = automaton.nodes[pick % len(automaton.nodes)]
    tree = automaton.trees[node]
    leaf = tree.leaves(automaton.inputs.matrix(state[None], weights[None]))[0]
    for place in np.flatnonzero(tree.column < 0):
        conditions = automaton.conditions(tree, int(place))
        together = all(c.holds(automaton.inputs, state, weights) for c in conditions)
        assert together == (place == leaf)
        assert len({(c.kind, c.name) for c in conditions}) == len(conditions)


def test_a_reason_without_conditions_counts_the_people_who_did_the_same():
    problem, model, automaton = trained()
    planner = AutomatonPlanner(automaton, model)
    state, weights = np.array([80.0, 30.0, 0.0, 0.0]), np.array([20.0, 5.0, 90.0, 1.0])
    repay = problem.actions.move("repay", 0.0)
    for reason in planner.reasons(state, weights, [repay, repay]):
        tree = automaton.trees[reason.node]
        assert reason.did <= reason.of <= tree.counts[0].sum()
        text = reason.words(problem)
        if not reason.conditions:
            assert f"{reason.did} of the {reason.of} people" in text or not reason.did
    few = automaton_from_plans(
        problem, [planner.plan(state, weights)], weights, aware=True, teacher="by hand"
    )
    [first, *_] = AutomatonPlanner(few, model).plan(state, weights).steps
    assert first.reason == "because 1 of the 1 people learned from began with it"


def test_protected_features_are_never_a_reason():
    problem, _, automaton = trained()
    looked_at = {
        problem.space.names[column.place]
        for column in automaton.inputs.columns
        if column.kind in ("number", "category")
    }
    assert looked_at == {"debt", "income", "job"}


def test_plans_respect_what_is_allowed_on_a_problem_with_requirements():
    problem = small_problem()
    model, rng = small_model(problem), np.random.default_rng(0)
    states, weights = random_people(problem, 200, rng)
    automaton = train_automaton(problem, model, ExactPlanner(problem, model), states, weights)
    planner = AutomatonPlanner(automaton, model)
    others, theirs = random_people(problem, 60, np.random.default_rng(9))
    plans = planner.plan_many(others, theirs)
    best = ExactPlanner(problem, model, max_changes_per_feature=3).plan_many(others, theirs)
    for state, plan, bound in zip(others, plans, best, strict=True):
        current = state[None]
        for move in plan.moves:
            assert problem.actions.allowed(current)[0, move]
            current = problem.actions.apply(current, np.array([move]))
        assert plan.success == model.favourable(current)[0]
        assert plan.certificate.verdict == ("heuristic" if plan.success else "unknown")
        if plan.success:
            assert plan.cost >= bound.cost - 1e-9
    assert sum(p.success for p in plans) >= 0.9 * sum(p.success for p in best)


def test_walking_is_deterministic_and_the_batch_equals_one_by_one():
    _, model, automaton = trained()
    planner = AutomatonPlanner(automaton, model)
    states = rule_people(30, seed=4)
    weights = draw_weights(30, np.random.default_rng(4))
    together = planner.plan_many(states, weights)
    alone = [planner.plan(s, w) for s, w in zip(states, weights, strict=True)]
    assert [plan.moves for plan in together] == [plan.moves for plan in alone]
    assert [plan.certificate.rows for plan in together] == [plan.certificate.rows for plan in alone]


def test_a_strict_walk_follows_one_path_and_never_does_better():
    _, model, automaton = trained()
    states = rule_people(60, seed=5)
    weights = draw_weights(60, np.random.default_rng(5))
    free = AutomatonPlanner(automaton, model).plan_many(states, weights)
    strict = AutomatonPlanner(automaton, model, strict=True).plan_many(states, weights)
    assert sum(plan.success for plan in strict) <= sum(plan.success for plan in free)
    for one, other in zip(strict, free, strict=True):
        assert one.certificate.rows <= 1 + 3
        if one.success:
            assert other.cost <= one.cost + 1e-9


def test_limits_are_kept():
    _, model, automaton = trained()
    planner = AutomatonPlanner(automaton, model)
    limits = Limits(actions=("find work",), max_steps=2)
    for state in rule_people(20, seed=6):
        plan = planner.plan(state, np.array([20.0, 400.0, 10.0, 1.0]), limits)
        assert plan.length <= 2
        assert all(step.action != "find work" for step in plan.steps)


def test_proposals_are_the_walks_that_succeed_whoever_walks_beside():
    problem, model, automaton = trained()
    planner = AutomatonPlanner(automaton, model)
    people, rng = rule_people(12, seed=4), np.random.default_rng(4)
    weights = rng.uniform(0, 120, (12, 4))
    together = planner.propose(people, weights, [rng] * 12, 8)
    assert all(found.plans for found in together)
    for state, own, found in zip(people, weights, together, strict=True):
        [alone] = planner.propose(state[None], own[None], [rng], 8)
        assert alone == found
        assert planner.plan(state, own).moves in found.plans
        for moves in found.plans:
            assert model.favourable(walk(state, problem.actions, moves)[-1:])[0]


def test_candidates_are_the_distinct_walks_under_samples():
    _, model, automaton = trained()
    planner = AutomatonPlanner(automaton, model)
    state = np.array([80.0, 30.0, 0.0, 0.0])
    samples = draw_weights(60, np.random.default_rng(0))
    plans = planner.candidates(state, samples, 5).plans
    assert len(plans) >= 2
    assert len({plan.moves for plan in plans}) == len(plans)
    assert all(plan.success for plan in plans)
    assert all(step.reason.startswith("because") for plan in plans for step in plan.steps)
    costs = np.array(
        [
            planner.problem.costs.sequence_cost(state, planner.problem.actions, p.moves, samples)
            for p in plans
        ]
    )
    assert set(costs.argmin(axis=0)) == set(range(len(plans)))
    assert planner.plan(state, samples).cost == pytest.approx(costs.mean(axis=1).min())


def test_a_person_already_favourable_gets_a_plan_of_no_steps():
    _, model, automaton = trained()
    plan = AutomatonPlanner(automaton, model).plan(np.array([0.0, 90.0, 0.0, 0.0]), np.ones(4))
    assert plan.success
    assert plan.length == 0


def test_any_planner_can_teach():
    pytest.importorskip("pymoo", reason="needs the extra 'experiments'")
    problem, model, _ = trained()
    teacher = EvolutionPlanner(problem, model, population=20, generations=8)
    automaton = train_automaton(
        problem, model, teacher, rule_people(60, 2), np.ones(4), aware=False, people=30
    )
    assert automaton.teacher == "cscf"
    plans = AutomatonPlanner(automaton, model).plan_many(rule_people(30, 3), np.ones(4))
    assert np.mean([plan.success for plan in plans]) > 0.9


def test_saved_and_loaded_it_walks_the_same(tmp_path):
    problem, model, automaton = trained()
    automaton.save(tmp_path / "automaton.json")
    json.loads((tmp_path / "automaton.json").read_text())
    again = Automaton.load(tmp_path / "automaton.json", problem)
    states, weights = rule_people(30, 7), draw_weights(30, np.random.default_rng(7))
    first = AutomatonPlanner(automaton, model).plan_many(states, weights)
    second = AutomatonPlanner(again, model).plan_many(states, weights)
    assert [p.moves for p in first] == [p.moves for p in second]
    assert [[s.reason for s in p.steps] for p in first] == [
        [s.reason for s in p.steps] for p in second
    ]


def test_an_automaton_of_another_problem_is_refused():
    _, _, automaton = trained()
    with pytest.raises(FingerprintMismatch, match="train it again"):
        Automaton.from_dict(automaton.to_dict(), small_problem())


def broken(change):
    problem, _, automaton = trained()
    data = json.loads(json.dumps(automaton.to_dict()))
    change(data, data["trees"][str(START)])
    return data, problem


@pytest.mark.parametrize(
    "change",
    [
        lambda data, tree: data.update(format="something else"),
        lambda data, tree: data.pop("people"),
        lambda data, tree: data["trees"].pop(str(START)),
        lambda data, tree: data["trees"].update({"999": tree}),
        lambda data, tree: data.update(usual=[1.0]),
        lambda data, tree: tree.update(left=[0] * len(tree["left"])),
        lambda data, tree: tree.update(column=[500] * len(tree["column"])),
        lambda data, tree: tree.update(moves=[77] * len(tree["moves"])),
        lambda data, tree: tree.update(threshold=["x"]),
        lambda data, tree: tree.update(counts=[[1]]),
        lambda data, tree: tree.update(counts=[[-1] * len(row) for row in tree["counts"]]),
        lambda data, tree: data.update(usual=[float("nan")] * len(data["usual"])),
        lambda data, tree: data.update(people=float("inf")),
        lambda data, tree: tree.pop("right"),
    ],
)
def test_a_broken_file_is_refused_before_anything_walks(change):
    data, problem = broken(change)
    with pytest.raises(InvalidData):
        Automaton.from_dict(data, problem)


def test_a_file_that_cannot_be_read_is_refused(tmp_path):
    path = tmp_path / "automaton.json"
    with pytest.raises(InvalidData, match="cannot be opened"):
        Automaton.load(path, rule_problem())
    path.write_text("[" * 100_000)
    with pytest.raises(InvalidData, match="is no JSON"):
        Automaton.load(path, rule_problem())


def test_a_teacher_or_plans_of_another_problem_are_refused():
    problem, model, _ = trained()
    other = small_problem()
    teacher = ExactPlanner(other, small_model(other))
    with pytest.raises(FingerprintMismatch, match="'teacher' plans for another problem"):
        train_automaton(problem, model, teacher, rule_people(20, seed=0), np.ones(4))
    states, weights = random_people(other, 5, np.random.default_rng(0))
    with pytest.raises(FingerprintMismatch, match="a plan of another problem"):
        automaton_from_plans(problem, teacher.plan_many(states, weights), np.ones(4))


def test_nothing_to_learn_from_is_said():
    problem, model, _ = trained()
    with pytest.raises(InvalidSetting, match="nobody"):
        train_automaton(
            problem, model, ExactPlanner(problem, model), np.array([[0.0, 90, 0, 0]]), np.ones(4)
        )
    with pytest.raises(InvalidSetting, match="no successful plan"):
        automaton_from_plans(rule_problem(), [], np.ones(4))
    teacher, people = ExactPlanner(problem, model), rule_people(20, seed=0)
    with pytest.raises(InvalidSetting, match="'people' must be at least 1"):
        train_automaton(problem, model, teacher, people, np.ones(4), people=0)
    with pytest.raises(InvalidSetting, match="for each of 20 people"):
        train_automaton(problem, model, teacher, people, np.ones((5, 4)))
    with pytest.raises(InvalidSetting, match="width"):
        AutomatonPlanner(trained()[2], model, width=0)
