"""Training: determinism, checkpoints, replay, refusals."""

import csv

import numpy as np
import pytest
import torch

from pear.decision import BlackBox
from pear.errors import FingerprintMismatch, InvalidSetting, ModelRefused
from pear.planning.learned.episodes import EpisodeSearch, Shard
from pear.planning.learned.planners import WFARE, dirichlet
from pear.planning.learned.policy import Policy, read_safetensors
from pear.planning.learned.training import (
    Trainer,
    TrainingSettings,
    load_checkpoint,
    save_checkpoint,
    write_curves,
)
from pear.planning.tree.rules import SavingRules
from tests.planning.learned.agents import quick_trainer, sample_weights
from tests.planning.small_problems import random_people, small_model, small_problem


def same_agents(first, second):
    one, two = first.agent.state_dict(), second.agent.state_dict()
    return all(torch.equal(one[name], two[name]) for name in one)


@pytest.mark.parametrize("kind", ["rl", "fare", "wfare"])
@pytest.mark.slow
def test_the_same_seed_gives_the_same_policy(kind):
    first = quick_trainer(kind, iterations=3).run()
    again = quick_trainer(kind, iterations=3).run()
    other = quick_trainer(kind, iterations=3, seed=1).run()
    assert same_agents(first, again)
    assert not same_agents(first, other)


@pytest.mark.slow
def test_training_lowers_the_loss_and_the_cost():
    trainer = quick_trainer("wfare")
    trainer.run()
    first, last = trainer.history[3], trainer.history[-1]
    assert last.loss < 0.7 * trainer.history[0].loss
    assert last.validation_success >= first.validation_success


@pytest.mark.parametrize(
    ("kind", "settings"), [("rl", {}), ("wfare", {"buffer": 12, "hard_share": 0.3})]
)
@pytest.mark.slow
def test_interrupted_training_goes_on_exactly(kind, settings, tmp_path):
    whole = quick_trainer(kind, iterations=6, **settings)
    whole.run()
    begun = quick_trainer(kind, iterations=6, **settings)
    for _ in range(3):
        begun.step()
    save_checkpoint(begun, tmp_path / "training.safetensors")
    resumed = quick_trainer(kind, iterations=6, **settings)
    load_checkpoint(resumed, tmp_path / "training.safetensors")
    assert resumed.iteration == 3
    resumed.run()
    assert same_agents(whole.policy, resumed.policy)
    assert same_agents(whole.best_policy, resumed.best_policy)
    assert [line.loss for line in whole.history] == [line.loss for line in resumed.history]


@pytest.mark.slow
def test_checkpoints_are_written_at_every_validation(tmp_path):
    written = []
    quick_trainer("fare", iterations=8).run(checkpoint=lambda t: written.append(t.iteration))
    assert written == [4, 8]


def test_a_checkpoint_of_other_training_is_refused(tmp_path):
    path = tmp_path / "training.safetensors"
    save_checkpoint(quick_trainer("fare"), path)
    with pytest.raises(FingerprintMismatch, match="'simulations' was 8, is 9"):
        load_checkpoint(quick_trainer("fare", simulations=9), path)


@pytest.mark.parametrize("lost", ["progress", "replay.moves", "adam.0.step"])
def test_a_damaged_checkpoint_is_refused_in_words(tmp_path, lost):
    from safetensors.torch import save_file

    path = tmp_path / "training.safetensors"
    begun = quick_trainer("fare")
    begun.step()
    save_checkpoint(begun, path)
    tensors, metadata = read_safetensors(path)
    (metadata if lost in metadata else tensors).pop(lost)
    save_file(tensors, str(path), metadata=metadata)
    with pytest.raises(ModelRefused, match="--restart"):
        load_checkpoint(quick_trainer("fare"), path)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ModelRefused, match="--restart"):
        load_checkpoint(quick_trainer("fare"), path)


@pytest.mark.slow
def test_processes_find_what_this_one_finds():
    """A model that can travel is searched in two processes, with the same episodes and rows."""
    problem = small_problem()
    policy = Policy.fresh(problem, "wfare", np.full(problem.costs.n_weights, 30.0), hidden=8)
    states, weights = random_people(problem, 12, np.random.default_rng(0))
    shards = [
        Shard(states[part], weights[part][:, None], 5, 4, 3, (0.3, 0.3))
        for part in (slice(0, 6), slice(6, 12))
    ]
    found = []
    for workers in (1, 2):
        black_box = BlackBox(Worth(), problem.space, problem.goal)
        searcher = EpisodeSearch(policy, black_box, workers)
        assert (searcher.pool is None) == (workers == 1)
        found.append((searcher(shards), black_box.rows))
        searcher.close()
    (here, rows), (there, rows_there) = found
    assert here.moves.tolist() == there.moves.tolist()
    assert rows == rows_there == here.rows


def test_a_model_that_cannot_travel_is_searched_here():
    assert quick_trainer("wfare", workers=2).searcher.pool is None


class Worth:
    """The small problem's model as an object that another process can import."""

    def __call__(self, states):
        return 1 / (1 + np.exp(6 - states[:, 1] + states[:, 2] - 2 * states[:, 3]))


def test_training_ends_when_validation_no_longer_improves():
    trainer = quick_trainer("wfare", iterations=500, validate_every=1, patience=2)
    trainer.run()
    assert trainer.iteration < 500
    assert trainer.stale == 2


def test_the_replay_keeps_the_best_trace_and_prefers_successes():
    trainer = quick_trainer("wfare")
    for _ in range(6):
        before = trainer.replay.merit.copy()
        trainer.step()
        assert (trainer.replay.merit >= before).all()
    replay = trainer.replay
    seen = np.flatnonzero(replay.merit > -np.inf)
    replay.traces.success[seen[: len(seen) // 2]] = False
    replay.traces.success[seen[len(seen) // 2 :]] = True
    drawn = replay.sample(4000, np.random.default_rng(0))
    share = len(seen) - len(seen) // 2
    expected = share / (share + 0.25 * (len(seen) // 2))
    assert drawn.success.mean() == pytest.approx(expected, abs=0.03)


def test_noise_is_the_smaller_share_and_stays_legal():
    rng = np.random.default_rng(0)
    legal = np.tile([True, True, False, True], (20_000, 1))
    prior = np.tile([0.7, 0.2, 0.0, 0.1], (20_000, 1))
    mixed = dirichlet(0.3, 0.3, rng)(prior, legal, np.arange(len(prior)))
    assert mixed.sum(axis=1) == pytest.approx(1)
    assert (mixed[:, 2] == 0).all()
    assert mixed.mean(axis=0) == pytest.approx([0.59, 0.24, 0, 0.17], abs=0.01)
    assert (mixed >= 0.7 * prior - 1e-12).all()


def test_curves_are_a_table(tmp_path):
    trainer = quick_trainer("fare", iterations=4)
    trainer.run()
    write_curves(trainer.history, tmp_path / "curves.csv")
    with (tmp_path / "curves.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["iteration"] for row in rows] == ["1", "2", "3", "4"]
    assert float(rows[-1]["validation_success"]) > 0


def test_people_the_model_accepts_are_no_use():
    problem = small_problem()
    people = np.tile([30.0, 9.0, 0.0, 2.0], (5, 1))
    mean = np.ones(problem.costs.n_weights)
    with pytest.raises(InvalidSetting, match="at least 2 people the model refuses \\(got 0\\)"):
        Trainer(problem, small_model(problem), people, sample_weights, mean)


@pytest.mark.parametrize(
    "wrong",
    [
        {"iterations": 0},
        {"learning_rate": 0.0},
        {"noise_share": 1.0},
        {"pool": -1},
        {"cost_weight": -1.0},
    ],
)
def test_settings_out_of_range_are_refused(wrong):
    with pytest.raises(InvalidSetting, match=next(iter(wrong))):
        TrainingSettings(**wrong)


def test_a_buffer_teaches_the_latest_people_alone():
    trainer = quick_trainer("wfare", iterations=2, buffer=5)
    trainer.step()
    latest = trainer.batch()[:5]
    traces = trainer.replay.traces.where(latest)
    trainer.replay.add(latest, traces, trainer.replay.moves[latest], np.full(5, np.inf))
    known = {seen.tobytes() for seen in trainer.replay.traces.seen[latest]}
    drawn = trainer.replay.sample(40, np.random.default_rng(0))
    assert {seen.tobytes() for seen in drawn.seen} <= known


def test_a_share_of_the_batch_is_of_those_solved_worst():
    trainer = quick_trainer("wfare", iterations=2, hard_share=0.5)
    trainer.step()
    people = len(trainer.people)
    trainer.replay.merit[:] = np.arange(people)
    batch = trainer.batch()
    assert len(set(batch.tolist())) == len(batch)
    worst = set(range(people // 4))
    count = min(len(batch) // 2, people // 4)
    assert set(batch[:count].tolist()) <= worst


def test_a_policy_is_searched_with_the_cost_term_it_was_trained_with():
    trainer = quick_trainer("wfare", iterations=1, cost_weight=1e-5)
    for policy in (trainer.policy, trainer.best_policy):
        assert WFARE(policy, trainer.black_box).settings == SavingRules(cost_weight=1e-5)
        given = SavingRules(gamma=0.9)
        assert WFARE(policy, trainer.black_box, rules=given).settings == given
