"""Plans: steps, words, JSON and back; limits; the problem that makes them."""

import json
import pickle
from dataclasses import replace

import numpy as np
import pytest

from pear.errors import InvalidInput, InvalidPlan, InvalidProblem, InvalidSetting
from pear.preferences import default_prior
from pear.problem import (
    NO_LIMITS,
    Action,
    ActionSpace,
    Archetype,
    Certificate,
    CostGraph,
    Feature,
    FeatureSpace,
    Goal,
    Limits,
    Plan,
    Problem,
)
from tests.problem.examples import chain_problem, mixed_problem

RECORD = {
    "age": 30, "income": 2100.0, "debt": 4, "school": "school", "job": "clerk", "owner": False,
}  # fmt: skip


def mixed_plan(**changes):
    problem = mixed_problem()
    moves = [problem.actions.move("study", "degree"), problem.actions.move("rise", "manager")]
    scores = np.array([0.1, 0.2, changes.pop("last", 0.6)])
    certificate = Certificate("optimal", 1.0, 1.0, rows=1234, seconds=0.1, max_length=3)
    weights = np.arange(10.0)
    return problem, problem.make_plan(
        problem.state(RECORD), moves, weights, scores, certificate, model_fingerprint="m", **changes
    )


def test_a_plan_holds_each_step_with_its_values_cost_and_scores():
    problem, plan = mixed_plan()
    assert [(s.feature, s.before, s.after) for s in plan.steps] == [
        ("school", "school", "degree"),
        ("job", "clerk", "manager"),
    ]
    # study: w_school·1 = 3. rise: w_job·1 + w_school->job(0.25 + 1) + w_age->job(0.25 + 1/6).
    assert plan.steps[0].cost == 3.0
    assert plan.steps[1].cost == pytest.approx(4 + 6 * 1.25 + 7 * (0.25 + 12 / 72))
    assert plan.cost == pytest.approx(sum(step.cost for step in plan.steps))
    assert [(s.score_before, s.score_after) for s in plan.steps] == [(0.1, 0.2), (0.2, 0.6)]
    assert plan.success
    assert plan.length == 2
    assert plan.start == RECORD
    assert plan.problem_fingerprint == problem.fingerprint
    assert plan.words().splitlines()[0] == (
        "1. Change your school from school to degree (cost 3.0)"
    )
    assert "no cheaper plan exists among the plans with at most 3 changes" in plan.words()


def test_success_needs_the_score_above_threshold_and_margin():
    assert not mixed_plan(last=0.45)[1].success
    assert mixed_plan(last=0.4501)[1].success
    assert not mixed_plan(last=0.6, limits=Limits(margin=0.3))[1].success
    assert mixed_plan(last=0.6, limits=Limits(margin=0.01))[1].success


def test_a_plan_comes_back_from_json():
    _, plan = mixed_plan()
    blocked = Certificate("infeasible", rows=1, blocking=(("no change of job",), ("a", "b")))
    for one in (plan, plan.with_certificate(blocked)):
        assert Plan.from_json(one.to_json()) == one
        assert Plan.from_dict(json.loads(json.dumps(one.to_dict()))) == one


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.pop("steps"), "the plan lacks 'steps'; was it written by this package"),
        (lambda d: d.pop("cost"), "cannot be read: .*cost"),
        (lambda d: d.update(cost="much"), r"the plan's cost must be a number \(got 'much'\)"),
        (lambda d: d.update(score=None), "the plan's score must be a number"),
        (lambda d: d.update(success="yes"), "'success' must be true or false"),
        (lambda d: d.update(extra=1), "cannot be read: .*extra"),
        (lambda d: d["steps"][1].update(cost=None), "cost of step 2 must be a number"),
        (lambda d: d["steps"][0].pop("words"), "cannot be read: .*words"),
        (lambda d: d["moves"].pop(), "2 steps and 1 moves; one is missing"),
        (lambda d: d.update(moves=["x"]), "cannot be read"),
        (lambda d: d["certificate"].update(verdict="sure"), "'verdict' must be one of optimal"),
    ],
)
def test_a_damaged_plan_is_refused_saying_what_is_wrong(change, message):
    data = mixed_plan()[1].to_dict()
    data = json.loads(json.dumps(data))
    change(data)
    with pytest.raises(InvalidPlan, match=message):
        Plan.from_dict(data)


def test_what_is_no_plan_at_all_is_refused():
    for text in ("{", "[" * 100_000):
        with pytest.raises(InvalidPlan, match="not JSON"):
            Plan.from_json(text)
    with pytest.raises(InvalidPlan, match=r"must be a JSON object .got a list"):
        Plan.from_json("[]")


def test_certificates_in_words():
    assert Certificate("optimal", rows=1).words() == (
        "Proven: no cheaper plan exists among the plans considered (1 row asked)."
    )
    limit = Certificate("infeasible", rows=2000, max_length=5, blocking=(("a", "b"), ("c",)))
    assert limit.words() == (
        "Proven: no plan with at most 5 changes turns the decision around (2,000 rows asked). "
        "Lifting your limit would open one: a and b; or c."
    )
    bounded = Certificate("bounded", 3.0, 4.5)
    assert "nothing below 3.00 exists, this plan costs 4.50" in bounded.words()
    assert bounded.gap == 1.5
    assert Certificate("unknown", 3.0).gap is None
    assert "none may exist" in Certificate("unknown").words()
    assert "proves nothing" in Certificate("heuristic").words()


def test_no_plan_and_nothing_to_do_in_words():
    problem, plan = mixed_plan()
    empty = problem.make_plan(
        problem.state(RECORD), [], np.ones(10), np.array([0.9]), Certificate("optimal")
    )
    assert (empty.cost, empty.success, empty.steps) == (0.0, True, ())
    assert empty.words() == "Nothing to change: the decision is favourable already."
    failed = replace(plan, success=False, certificate=Certificate("unknown"))
    assert failed.words().startswith("No plan. No plan found")


def test_costs_of_a_plan_under_samples_are_means_of_floored_costs():
    problem = chain_problem(2, floor=1.0)
    move = problem.actions.move("set s1", 5.0)
    samples = np.array([[-10.0, 0, 0], [2.0, 0, 0]])
    plan = problem.make_plan(
        np.ones(2), [move], samples, np.array([0.0, 1.0]), Certificate("heuristic")
    )
    assert plan.cost == (1.0 + 8.0) / 2
    with pytest.raises(InvalidSetting, match=r"after each of 1 steps .got 1.; give 2"):
        problem.make_plan(np.ones(2), [move], samples, np.array([0.0]), Certificate("heuristic"))


def test_limits_grow_shrink_and_come_back_from_json():
    limits = (
        NO_LIMITS.without_features("job", "job")
        .without_actions("earn")
        .without_value("school", "degree")
    )
    limits = replace(limits, max_steps=2, margin=0.1)
    assert Limits.from_dict(json.loads(json.dumps(limits.to_dict()))) == limits
    parts = dict(limits.parts())
    assert list(parts) == [
        "no change of job",
        "no action earn",
        "not school = degree",
        "at most 2 steps",
        "a margin of 0.1",
    ]
    assert parts["no action earn"] == replace(limits, actions=())
    assert list(NO_LIMITS.parts()) == []
    assert Limits(features=["job"]) == Limits(features=("job",))
    assert hash(Limits(values=[["job", "clerk"]])) == hash(Limits(values=(("job", "clerk"),)))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"features": "job"}, r"'features' must be a list \(got 'job' that is a str\)"),
        ({"features": [3]}, "a limit must be a name .got 3"),
        ({"values": [("job",)]}, "pairs of a feature and a value"),
        ({"values": [(1, 2)]}, "pairs of a feature and a value"),
        ({"max_steps": 0}, "at least 1 .got 0.; leave it out"),
        ({"max_steps": 1.5}, "whole number"),
        ({"max_steps": True}, "whole number"),
        ({"margin": 1.0}, r"'margin' must be a number in \[0, 1\) \(got 1.0\)"),
        ({"margin": "some"}, "'margin' must be a number"),
        ({"step": 3}, "limits have no 'step' .got 3.; they have features"),
    ],
)
def test_limits_that_make_no_sense_are_refused(settings, message):
    with pytest.raises(InvalidSetting, match=message):
        Limits.from_dict(settings)


def test_limits_must_be_an_object():
    with pytest.raises(InvalidSetting, match="must be a JSON object"):
        Limits.from_dict([])


def rebuilt(**changes):
    return lambda: replace(mixed_problem(), **changes)


@pytest.mark.parametrize(
    ("build", "key", "message"),
    [
        (rebuilt(max_length=0), "max_length", "at least 1 .got 0"),
        (rebuilt(max_length=2.0), "max_length", "whole number"),
        (rebuilt(name=3), "name", "must be a text"),
        (rebuilt(weight_range={"pay": (1, 2)}), "weights.ranges.pay", "no weight 'pay'; the w"),
        (rebuilt(weight_range={"age": (2, 1)}), "weights.ranges.age", "must increase"),
        (rebuilt(weight_range={"age": 3}), "weights.ranges.age", "two numbers .got 3"),
        (rebuilt(default_range=(1.0, float("inf"))), "weights.default", "two numbers"),
        (
            rebuilt(archetypes=(Archetype("a", (1.0,), (1.0,)),)),
            "archetypes",
            "mean and spread of all 10 weights",
        ),
        (
            rebuilt(archetypes=(Archetype("a", (1.0,) * 10, (1.0,) * 10),) * 2),
            "archetypes",
            "names must differ",
        ),
        (lambda: Archetype("", (), ()), "name", "must be a text"),
        (lambda: Archetype("a", (float("nan"),), (1.0,)), "mean", "finite"),
        (lambda: Archetype("a", (1.0,), (0.0,)), "spread", "positive"),
        (lambda: Archetype("a", (1.0,), (1.0,), 0.0), "share", "positive"),
        (lambda: Goal(threshold=1.0), "threshold", r"\[0, 1\) \(got 1.0\)"),
        (lambda: Goal(threshold="half"), "threshold", "must be a number"),
        (lambda: Goal(threshold=0.5, margin=0.5), "margin", "leave room below 1 .got 0.5"),
        (lambda: Goal(margin=None), "margin", "at least 0"),
        (lambda: Goal(just_enough=1), "just_enough", r"number in \[0, 1\) \(got 1\)"),
        (lambda: Goal("yes"), "favourable", "list of classes .got 'yes'"),
        (lambda: Goal(([1],)), "favourable", "a text or a number"),
        (lambda: Goal(("1", 1)), "favourable", "lists a class twice"),
    ],
)
def test_a_problem_that_contradicts_itself_is_refused(build, key, message):
    with pytest.raises(InvalidProblem, match=message) as refusal:
        build()
    assert refusal.value.key == key


def test_parts_of_different_problems_do_not_mix():
    problem = mixed_problem()
    other = FeatureSpace((Feature("x"),))
    with pytest.raises(InvalidProblem, match="build all three on one FeatureSpace"):
        replace(problem, costs=CostGraph(other))


def test_a_problem_of_lists_builds_its_own_spaces():
    features = [Feature("income"), Feature("savings")]
    actions = [Action("earn", "income", "add", (100.0,))]
    problem = Problem(features, actions, edges=[("income", "savings")])
    space = FeatureSpace(tuple(features))
    graph = CostGraph(space, (("income", "savings"),))
    assert problem == Problem(space, ActionSpace(space, tuple(actions)), graph)
    assert pickle.loads(pickle.dumps(problem)) == problem
    with pytest.raises(InvalidProblem, match="give one of the two"):
        Problem(space, actions, graph, edges=[("income", "savings")])


def test_a_problem_says_in_one_line_what_it_is():
    assert repr(mixed_problem()) == (
        "Problem('a problem; 100% odd': 6 features, 7 actions with 20 choices, 4 edges, "
        "at most 3 changes)"
    )


@pytest.mark.parametrize("archetypes", [True, False])
def test_the_usual_weights_are_the_mean_of_the_prior(archetypes):
    problem = mixed_problem() if archetypes else replace(mixed_problem(), archetypes=())
    assert np.allclose(problem.usual_weights, default_prior(problem).mean())
    assert np.array_equal(problem.weights(), problem.usual_weights[None])


def test_weights_of_many_people_in_every_form():
    problem = chain_problem()
    p, rng = problem.costs.n_weights, np.random.default_rng(0)
    each, samples = rng.random((4, p)), rng.random((4, 3, p))
    assert np.array_equal(problem.weights_of(4), np.tile(problem.usual_weights, (4, 1, 1)))
    assert np.array_equal(problem.weights_of(4, each[0]), np.tile(each[0], (4, 1, 1)))
    assert np.array_equal(problem.weights_of(4, each), each[:, None])
    assert np.array_equal(problem.weights_of(4, samples), samples)
    assert np.array_equal(problem.weights_of(4, samples[:1]), np.tile(samples[0], (4, 1, 1)))
    assert problem.weights(samples[0]).shape == (3, p)
    for wrong in (each[:3], samples[:2], samples[..., :1]):
        with pytest.raises(InvalidSetting, match="'weights'"):
            problem.weights_of(4, wrong)


def test_the_fingerprint_follows_what_decides_and_nothing_else():
    problem = mixed_problem()
    same = [
        replace(problem, name="other"),
        replace(problem, archetypes=()),
        replace(problem, max_length=np.int64(3)),
    ]
    assert {p.fingerprint for p in same} == {problem.fingerprint}
    different = [
        replace(problem, max_length=4),
        replace(problem, goal=Goal(("yes",), 0.4, 0.05)),
        replace(problem, costs=replace(problem.costs, floor=1.0)),
        replace(
            problem,
            costs=problem.costs.without_edges(1.0, 0),
            weight_range={},
            archetypes=(),
        ),
    ]
    assert len({p.fingerprint for p in different} | {problem.fingerprint}) == 5


def test_rewording_and_the_type_of_a_number_do_not_change_the_fingerprint():
    def problem(lower, label, phrase, reviewed=True):
        space = FeatureSpace((Feature("x", lower=lower, label=label),))
        action = Action("a", "x", "add", (1,), phrase=phrase, reviewed=reviewed)
        return Problem(space, ActionSpace(space, (action,)), CostGraph(space))

    assert problem(0, "", "").fingerprint == problem(0.0, "ex", "{after}").fingerprint
    assert problem(0, "", "").fingerprint == problem(0, "", "", reviewed=False).fingerprint
    assert problem(0, "", "").fingerprint != problem(0.5, "", "").fingerprint


def test_weights_and_states_by_name():
    problem = mixed_problem()
    weights = {name: float(i) for i, name in enumerate(problem.weight_names)}
    assert problem.weights(weights).tolist() == [list(range(10))]
    with pytest.raises(InvalidSetting, match="missing for age"):
        problem.weights({k: v for k, v in weights.items() if k != "age"})
    with pytest.raises(InvalidSetting, match="there is no weight 'pay'"):
        problem.weights({**weights, "pay": 1.0})
    assert problem.weight_ranges[1].tolist() == [1.0, 2.5]
    assert problem.weight_ranges[0].tolist() == [0.5, 7.0]
    assert problem.state(RECORD).shape == (6,)
    with pytest.raises(InvalidInput, match=r"one person was expected .got 2 rows"):
        problem.state([RECORD, RECORD])
