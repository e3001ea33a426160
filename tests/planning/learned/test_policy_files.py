"""Policies kept in files, and files that are refused."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from pear.errors import FingerprintMismatch, ModelRefused
from pear.planning.learned import WFARE, Policy
from pear.problem import Goal
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
    with pytest.raises(FingerprintMismatch, match=r"goal are now without 0\.5 and with 0\.6"):
        Policy.load(path, replace(problem, goal=Goal(threshold=0.6)))
    shorter = replace(
        problem, actions=replace(problem.actions, actions=problem.actions.actions[:3])
    )
    with pytest.raises(FingerprintMismatch, match="actions are now without be promoted"):
        Policy.load(path, shorter)


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
