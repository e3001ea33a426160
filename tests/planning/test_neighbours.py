"""FACE against the definition of its graph and the shortest paths found by relaxation."""

import os

import numpy as np
import pandas as pd
import pytest

from pear.errors import InvalidProblem, InvalidSetting
from pear.planning.neighbours import NeighboursPlanner, places_of
from pear.problem import Limits
from tests.planning.small_problems import random_people, small_model, small_problem


def training(n, seed=0):
    """Points of two ages, some of them well off."""
    rng = np.random.default_rng(seed)
    states, _ = random_people(small_problem(), n, rng)
    states[:, 0] = np.where(states[:, 0] < 45, 30.0, 60.0)
    states[:, 1] += rng.integers(0, 5, n)
    return states


@pytest.fixture(scope="module")
def planner():
    problem = small_problem()
    return NeighboursPlanner(problem, small_model(problem), training(90), share=1.0, k=25)


@pytest.fixture(scope="module")
def person(planner):
    record = {"age": 30.0, "income": 1.0, "debt": 5.0, "job": "none"}
    return planner.problem.state(record)


def edges_by_definition(planner, state):
    """Edge lengths as a dict, from the k nearest that agree in the immutable feature."""
    points = planner.points
    places = places_of(planner.problem.space, np.vstack([points, state]))
    sparse_at = [*planner.sparseness, 1.0]
    edges = {}
    for i in range(len(points) + 1):
        age = points[i, 0] if i < len(points) else state[0]
        others = [j for j in range(len(points)) if j != i and points[j, 0] == age]
        far = {j: float(np.linalg.norm(places[i] - places[j])) for j in others}
        for j in sorted(others, key=far.get)[: planner.k]:
            edges[i, j] = max(far[j], 1e-9) * (sparse_at[i] + sparse_at[j]) / 2
    return edges


def relaxed(edges, source, n):
    """Shortest distances by repeated relaxation (Bellman and Ford)."""
    distance = np.full(n, np.inf)
    distance[source] = 0.0
    for _ in range(n):
        for (i, j), length in edges.items():
            distance[j] = min(distance[j], distance[i] + length)
    return distance


def test_paths_are_the_shortest_and_made_of_training_points():
    problem = small_problem()
    rng = np.random.default_rng(3)
    # Distinct incomes make all distances distinct, so that the k nearest are well defined.
    states = training(40, seed=1)
    states[:, 1] += rng.uniform(0, 0.5, 40)
    states[:, 2] += rng.uniform(0, 0.5, 40)
    planner = NeighboursPlanner(problem, small_model(problem), states, share=1.0, k=9)
    state = np.array([30.0, 0.7, 5.0, 0.0])
    routes = planner.routes(state)
    edges = edges_by_definition(planner, state)
    distance = relaxed(edges, 40, 41)
    good = planner.scores > 0.5
    assert set(routes.targets) == {i for i in range(40) if good[i] and np.isfinite(distance[i])}
    assert len(routes.targets) >= 2
    assert np.allclose(routes.distances, distance[routes.targets])
    for target, length in zip(routes.targets, routes.distances, strict=True):
        path = routes.path(target)
        assert all(0 <= point < 40 for point in path)
        assert path[-1] == target
        assert sum(edges[i, j] for i, j in zip([40, *path], path, strict=False)) == pytest.approx(
            length
        )


def test_edges_join_only_points_that_agree_in_what_cannot_change(planner):
    rows, columns = planner.graph.nonzero()
    assert len(rows) > 100
    assert np.array_equal(planner.points[rows, 0], planner.points[columns, 0])


def test_a_small_radius_forbids_changes_of_category(planner):
    near = NeighboursPlanner(
        planner.problem, planner.black_box, planner.points, share=1.0, k=25, radius=0.5
    )
    rows, columns = near.graph.nonzero()
    assert len(rows) > 0
    assert np.array_equal(near.points[rows, 3], near.points[columns, 3])
    assert np.abs(near.points[rows, 1] - near.points[columns, 1]).max() <= 5.0
    rows, columns = planner.graph.nonzero()
    assert (planner.points[rows, 3] != planner.points[columns, 3]).any()


def test_the_plan_ends_at_a_favourable_training_point_and_claims_nothing(planner, person):
    plan = planner.plan(person, np.ones(6), rng=np.random.default_rng(0))
    end = {**plan.start, **{step.feature: step.after for step in plan.steps}}
    assert (planner.points == planner.problem.state(end)).all(axis=1).any()
    assert plan.success
    assert not plan.on_grid
    assert plan.moves == ()
    assert plan.certificate.verdict == "heuristic"
    assert all("training data" in step.reason for step in plan.steps)
    assert plan.cost == pytest.approx(sum(step.cost for step in plan.steps))


def test_it_takes_the_cheapest_favourable_point_it_reaches():
    # Without edges in the cost graph the order of changes does not matter.
    problem = small_problem()
    problem = type(problem)(
        problem.space,
        problem.actions,
        type(problem.costs)(problem.space),
        problem.goal,
        problem.max_length,
    )
    planner = NeighboursPlanner(problem, small_model(problem), training(90), share=1.0, k=25)
    state, weights = np.array([30.0, 1.0, 5.0, 0.0]), np.array([1.0, 40.0, 70.0, 9.0])
    ends = planner.points[planner.routes(state).targets]
    costs = [
        problem.costs.change_costs(state, end, np.flatnonzero(end != state), weights).sum()
        for end in ends
    ]
    assert planner.plan(state, weights).cost == pytest.approx(min(costs))


def test_the_order_is_random_and_the_seed_decides_it(planner, person):
    orders = [
        tuple(step.feature for step in planner.plan(person, np.ones(6), rng=rng).steps)
        for rng in map(np.random.default_rng, range(12))
    ]
    assert len(set(orders)) > 1
    again = planner.plan(person, np.ones(6), rng=np.random.default_rng(0)).steps
    assert orders[0] == tuple(step.feature for step in again)


def test_limits_are_kept(planner, person):
    limits = Limits(features=("job",), max_steps=2)
    for plan in planner.candidates(person, np.ones((3, 6)), 20, limits).plans:
        assert plan.length <= 2
        assert all(step.feature != "job" for step in plan.steps)
    values = Limits(values=(("job", "manager"),))
    plans = planner.candidates(person, np.ones((3, 6)), 50, values).plans
    assert plans
    assert all(step.after != "manager" for plan in plans for step in plan.steps)


def test_a_margin_nobody_reaches_is_no_success(planner):
    state = planner.problem.state({"age": 30.0, "income": 9.0, "debt": 2.0, "job": "none"})
    limits = Limits(margin=0.499999)
    assert planner.black_box.favourable(state[None])[0]
    plan = planner.plan(state, np.ones(6), limits=limits)
    assert not plan.success
    assert plan.certificate.verdict == "unknown"
    assert plan.limits == limits


def test_limits_on_unknown_names_are_refused(planner, person):
    with pytest.raises(InvalidProblem, match="no feature 'shoe size'"):
        planner.plan(person, np.ones(6), limits=Limits(features=("shoe size",)))
    with pytest.raises(InvalidProblem, match="unknown actions: fly"):
        planner.plan(person, np.ones(6), limits=Limits(actions=("fly",)))


def test_nobody_like_them_means_no_plan(planner):
    plan = planner.plan(np.array([99.0, 1.0, 5.0, 0.0]), np.ones(6))
    assert not plan.success
    assert plan.certificate.verdict == "unknown"


def test_a_person_already_favourable_gets_a_plan_of_no_steps(planner):
    plan = planner.plan(np.array([30.0, 10.0, 0.0, 2.0]), np.ones(6))
    assert plan.success
    assert plan.length == 0


def test_costs_of_changes_agree_with_those_of_moves(planner):
    problem = planner.problem
    states, _ = random_people(problem, 60, np.random.default_rng(2))
    allowed = problem.actions.allowed(states)
    for state, legal in zip(states, allowed, strict=True):
        for move in np.flatnonzero(legal):
            column = problem.actions.feature_of[move]
            after = problem.actions.apply(state[None], np.array([move]))[0]
            weights = np.linspace(5.0, 50.0, problem.costs.n_weights)
            ours = problem.costs.change_costs(state, after, [column], weights)
            theirs = problem.costs.costs(state[None], problem.actions, np.array([move]), weights)
            assert np.allclose(ours, theirs)


def test_a_table_is_as_good_as_states(planner):
    table = planner.problem.space.frame(planner.points)
    other = NeighboursPlanner(planner.problem, planner.black_box, table, share=1.0, k=25)
    assert isinstance(table, pd.DataFrame)
    assert np.array_equal(other.points, planner.points)


@pytest.mark.parametrize("setting", [{"share": 0.0}, {"k": 0}, {"radius": -1.0}])
def test_bad_settings_are_refused_by_name(planner, setting):
    with pytest.raises(InvalidSetting, match=next(iter(setting))):
        NeighboursPlanner(planner.problem, planner.black_box, planner.points, **setting)


def test_training_states_of_another_width_are_refused(planner):
    with pytest.raises(InvalidSetting, match="training"):
        NeighboursPlanner(planner.problem, planner.black_box, np.zeros((5, 2)))


@pytest.mark.published
@pytest.mark.skipif(
    not {"PEAR_BENCH", "PEAR_DATA"} <= set(os.environ), reason="needs PEAR_BENCH and PEAR_DATA"
)
@pytest.mark.slow
def test_validity_on_published_users_is_at_least_the_published():
    from benchmarks.baselines import adult_training_states

    from pear.datasets.published import (
        published_classifier,
        published_prior_means,
        published_problem,
        published_users,
    )

    problem = published_problem("adult")
    users, mean = published_users(problem), published_prior_means("adult").mean(axis=0)
    training = adult_training_states(problem)
    planner = NeighboursPlanner(problem, published_classifier(problem), training)
    plans = planner.plan_many(
        users.states, mean, rngs=np.random.default_rng(0).spawn(len(users.states))
    )
    assert np.mean([plan.success for plan in plans]) >= 0.15
