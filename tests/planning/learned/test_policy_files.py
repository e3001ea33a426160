"""Policies kept in files, and files that are refused."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from pear.errors import FingerprintMismatch, ModelRefused
from pear.planning.learned import WFARE, Policy
from pear.planning.learned.policy import read_safetensors
from pear.problem import ActionSpace, CostGraph, FeatureSpace, Goal, Problem
from tests.planning.learned.agents import trained_policy
from tests.planning.small_problems import random_people, small_model, small_problem


def test_a_policy_comes_back_as_it_was_saved(tmp_path):
    policy = trained_policy("wfare")
    policy.save(tmp_path / "policy.safetensors")
    again = Policy.load(tmp_path / "policy.safetensors", small_problem())
    assert again.settings == policy.settings
    assert again.mean_weights.tolist() == policy.mean_weights.tolist()
    states, weights = random_people(policy.problem, 10, np.random.default_rng(0))
    model = small_model(policy.problem)
    mine = WFARE(policy, model).plan_many(states, weights)
    other = WFARE(again, model).plan_many(states, weights)
    assert [p.moves for p in mine] == [p.moves for p in other]


def test_a_policy_for_another_problem_is_refused_saying_what_differs(tmp_path):
    path = tmp_path / "policy.safetensors"
    trained_policy("wfare").save(path)
    with pytest.raises(FingerprintMismatch, match="max_length was 3, is 2"):
        Policy.load(path, small_problem(max_length=2))
    problem = small_problem()
    with pytest.raises(FingerprintMismatch, match=r"goal: now without threshold 0\.5 and with "):
        Policy.load(path, replace(problem, goal=Goal(threshold=0.6)))
    shorter = replace(
        problem, actions=replace(problem.actions, actions=problem.actions.actions[:3])
    )
    with pytest.raises(FingerprintMismatch, match="actions: now without be promoted"):
        Policy.load(path, shorter)


def test_bounds_and_requirements_that_differ_are_named(tmp_path):
    path = tmp_path / "policy.safetensors"
    problem = small_problem()
    Policy.fresh(problem, "fare", np.ones(6)).save(path)
    features = tuple(
        replace(f, upper=8.0) if f.name == "income" else f for f in problem.space.features
    )
    space = FeatureSpace(features)
    actions = problem.actions.actions
    bounded = Problem(
        space, ActionSpace(space, actions), CostGraph(space, problem.costs.edges), Goal(), 3
    )
    with pytest.raises(FingerprintMismatch, match=r"upper 10\.0\) and with income .*upper 8\.0"):
        Policy.load(path, bounded)
    free = tuple(replace(action, requires=()) for action in actions)
    changed = replace(problem, actions=ActionSpace(problem.space, free))
    with pytest.raises(FingerprintMismatch, match=r"requires \(feature income, lower 3\)"):
        Policy.load(path, changed)


DAMAGE = {
    "no kind": lambda tensors, metadata: metadata.pop("kind"),
    "another kind": lambda tensors, metadata: metadata.update(kind="fare"),
    "settings cut off": lambda tensors, metadata: metadata.update(settings="{"),
    "no weights": lambda tensors, metadata: tensors.pop("mean_weights"),
    "a tensor lost": lambda tensors, metadata: tensors.pop("agent.value_head.0.bias"),
    "no encoder": lambda tensors, metadata: tensors.pop("agent.encoder.0.bias"),
    "a tensor more": lambda tensors, metadata: tensors.update(x=torch.zeros(2)),
    "not a number": lambda tensors, metadata: tensors["agent.value_head.0.bias"].fill_(np.nan),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_policy_is_refused_in_words(tmp_path, damage):
    from safetensors.torch import save_file

    path = tmp_path / "policy.safetensors"
    Policy.fresh(small_problem(), "wfare", np.ones(6)).save(path)
    tensors, metadata = read_safetensors(path)
    DAMAGE[damage](tensors, metadata)
    save_file(tensors, str(path), metadata=metadata)
    with pytest.raises(ModelRefused, match="train it again"):
        Policy.load(path, small_problem())


def test_other_files_are_refused(tmp_path):
    with pytest.raises(ModelRefused, match="there is no policy file"):
        Policy.load(tmp_path / "none.safetensors", small_problem())
    path = tmp_path / "text.safetensors"
    path.write_text("not a policy at all, but long enough to be read")
    with pytest.raises(ModelRefused, match="cannot be read as safetensors"):
        Policy.load(path, small_problem())
    from safetensors.torch import save_file

    save_file({"x": torch.zeros(1)}, str(path), metadata={"format": "other"})
    with pytest.raises(ModelRefused, match="is not a policy of this package"):
        Policy.load(path, small_problem())
