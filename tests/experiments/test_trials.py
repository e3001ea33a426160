"""Trials: our methods with one thing done as the published program does it."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from pear.experiments import competitors
from pear.experiments.profiles import PROFILES
from pear.experiments.registry import METHODS, TRIALS, build_world, find_method
from pear.experiments.tasks import Task

pytest.importorskip("torch")
trial_planners = pytest.importorskip("pear.experiments.trial_planners")


@pytest.fixture(scope="module")
def world(cache):
    return build_world("loan_book", "network", "all").first(12)


def task(method: str, **changes: int) -> Task:
    return Task("loan_book", "network", "all", method, 0, 0, 12, **changes)


def test_no_profile_runs_a_trial_and_each_goes_by_its_name():
    assert all(find_method(name).name == name for name in TRIALS)
    for profile in PROFILES.values():
        assert not set(TRIALS) & set(profile.methods)
    assert set(TRIALS) < set(METHODS)
    asked = PROFILES["smoke"].changed(methods=("face", "face-cut"))
    assert {task.method for task in competitors.EXPERIMENT.tasks(asked)} == {"face", "face-cut"}


def test_plans_that_change_a_feature_twice_are_told(world):
    numbers = world.problem.actions.action_of
    [first, again] = np.flatnonzero(numbers == 0)[:2]
    [other] = np.flatnonzero(numbers == 1)[:1]
    moves = np.array([[first, other, -1], [first, other, again], [first, -1, -1]])
    assert trial_planners.changes_once(world.problem, moves).tolist() == [True, False, True]


def test_a_candidate_without_stop_at_its_end_is_none(world):
    planner = trial_planners.StopEvolution(world.problem, world.black_box)
    count = len(world.problem.actions.actions)
    keys = np.full((3, 2 * (count + 1)), 0.9)
    keys[:, 0] = 0.2  # one action, and STOP after it, before it, and not at all
    keys[:, count] = (0.3, 0.1, 0.9)
    assert [(row >= 0).sum() for row in planner.decode(keys)] == [1, 0, 0]


def test_cutting_neighbours_afterwards_leaves_fewer_edges(world):
    settings = {"share": 0.05, "k": 10, "seed": 0}
    people = world.problem, world.black_box, world.training
    whole = trial_planners.NeighboursPlanner(*people, **settings)
    cut = trial_planners.CutNeighbours(*people, **settings)
    assert 0 < cut.graph.nnz < whole.graph.nnz
    fixed = cut.points[:, cut.fixed]
    row, column = cut.graph.nonzero()
    assert (fixed[row] == fixed[column]).all()


@pytest.mark.parametrize(("hops", "reached"), [(0, [0, 1, 2, 3]), (2, [0, 1])])
def test_points_too_many_hops_away_are_not_taken(world, monkeypatch, hops, reached):
    people = world.problem, world.black_box, world.training[:4]
    planner = trial_planners.CutNeighbours(*people, share=1.0, hops=hops)
    planner.__dict__["scores"] = np.ones(4)
    planner.__dict__["graph"] = csr_array(np.eye(4, k=1))
    monkeypatch.setattr(planner, "_edges", lambda *_, **__: csr_array(np.eye(1, 4)))
    assert planner.routes(world.states[0]).targets.tolist() == reached


def test_drawing_function_and_argument_apart_fails_more_often(world):
    solved = {
        name: sum(row["success"] for row in find_method(name).solve(world, {}, task(name)))
        for name in ("mcts", "mcts-drawn")
    }
    assert solved["mcts-drawn"] < solved["mcts"]


def test_random_questions_hold_any_plans_and_are_the_same_again(world):
    from pear.elicitation import Settings
    from pear.planning.exact import ExactPlanner

    planner = ExactPlanner(world.problem, world.black_box)
    settings = Settings(min_gain=0.0, draws=8, n_particles=200)

    def asked(kind: type) -> list[tuple[tuple[int, ...], ...]]:
        sessions = [kind(planner, s, world.prior, settings=settings) for s in world.states[:2]]
        return [tuple(p.moves for p in q.plans) for s in sessions if (q := s.ask())]

    drawn = asked(trial_planners.RandomSession)
    assert drawn == asked(trial_planners.RandomSession)
    assert drawn != asked(trial_planners.Session)
    assert all(len(set(plans)) == settings.k for plans in drawn)
