"""What is read from a model is compared with it, and named in the certificate."""

from dataclasses import replace

import numpy as np
import pytest
from benchmarks.brute_force import random_case
from benchmarks.growth import member

from pear.decision.ceilings import WhiteBox
from pear.decision.ceilings.networks import Layers
from pear.planning.exact import ExactPlanner
from pear.problem import Limits, walk


def readable_cases(n):
    """Cases whose model can be read, with a plan that takes at least one change."""
    found = []
    seed = 0
    while len(found) < n:
        case, seed = random_case(seed), seed + 1
        if isinstance(case.black_box.inside, WhiteBox) and len(case.weights) == 1:
            plan = plan_of(case, look_inside=False)
            if plan.certificate.verdict == "optimal" and plan.steps:
                found.append((case, plan))
    return found


def plan_of(case, **settings):
    planner = ExactPlanner(
        case.problem, case.black_box, max_changes_per_feature=case.repeats, **settings
    )
    return planner.plan(case.start, case.weights, case.limits)


@pytest.mark.parametrize("number", range(12))
def test_a_model_read_from_the_first_row_gives_the_same_plan_and_is_named(number):
    case, plan = readable_cases(number + 1)[-1]
    inside = case.black_box.inside
    case.black_box.inside = replace(inside, worth_after=0.0)
    found = plan_of(case)
    assert found.certificate.verdict == "optimal"
    assert found.moves == plan.moves
    assert found.certificate.looked_into in ("", inside.what)
    assert plan.certificate.looked_into == ""


class Misread:
    """A model as somebody might misread it: all margins far too low."""

    def __init__(self, inside):
        self._inside = inside
        self.inputs = inside.model.inputs

    def margins(self, matrix):
        return self._inside.model.margins(matrix) - 50.0

    def specialise(self, options, required, max_changes):
        return self._inside.model.specialise(options, required + 50.0, max_changes)


@pytest.mark.parametrize("number", range(6))
def test_what_was_read_wrongly_is_forgotten_with_all_that_it_proved(number):
    case, plan = readable_cases(number + 1)[-1]
    inside = case.black_box.inside
    case.black_box.inside = replace(inside, model=Misread(inside), worth_after=0.0)
    found = plan_of(case)
    assert found.moves == plan.moves
    assert found.certificate.verdict == "optimal"
    assert found.certificate.looked_into == ""


def test_a_model_that_is_misread_only_later_is_asked_about_everything(monkeypatch):
    [(case, plan)] = readable_cases(1)
    inside = case.black_box.inside
    told = []

    def agrees(self, states, scores):
        told.append(len(states))
        return len(told) < 2

    monkeypatch.setattr(WhiteBox, "agrees", agrees)
    case.black_box.inside = replace(inside, worth_after=0.0)
    found = plan_of(case)
    assert len(told) >= 2
    assert found.moves == plan.moves
    assert found.certificate.looked_into == ""


def network_cases(n):
    """Cases with a small network whose scores are read before any other row is asked."""
    cases = [c for c in readable_cases(40) if isinstance(c[0].black_box.inside.model, Layers)][:n]
    for case, _ in cases:
        inside = case.black_box.inside
        case.black_box.inside = replace(inside, worth_after=np.inf, scored_after=0.0)
    return cases


def test_a_network_is_not_asked_about_what_it_surely_refuses():
    for case, plan in network_cases(4):
        found = plan_of(case)
        assert found.moves == plan.moves
        assert found.certificate.verdict == "optimal"
        assert found.certificate.looked_into == case.black_box.inside.what
        assert found.certificate.rows <= plan.certificate.rows


def test_scores_that_turn_out_to_be_misread_are_forgotten(monkeypatch):
    [(case, plan)] = network_cases(1)
    told = []

    def agrees(self, states, scores):
        told.append(len(states))
        return len(told) < 2

    monkeypatch.setattr(WhiteBox, "agrees", agrees)
    found = plan_of(case)
    assert len(told) >= 2
    assert found.moves == plan.moves
    assert found.certificate.looked_into == ""


def test_the_certificate_says_it_in_words():
    words = [
        plan_of(case).certificate.words()
        for case, _ in readable_cases(12)
        if plan_of(case).certificate.looked_into
    ]
    assert all("looking into" in sentence for sentence in words)


def test_of_an_encoding_of_somebodys_own_nothing_is_read():
    torch = pytest.importorskip("torch")
    from pear.decision import from_torch
    from pear.problem import Action, Feature, Problem

    problem = Problem(
        [Feature("a", scale=(0, 9)), Feature("b", scale=(0, 9))],
        [Action("on_a", "a", "set", (5.0,)), Action("on_b", "b", "set", (5.0,))],
    )

    def both(states):
        # The third column needs both: no single change shows that it moves.
        return np.column_stack([states, (states > 4).all(axis=1)])

    module = torch.nn.Sequential(torch.nn.Linear(3, 1))
    black_box = from_torch(module, problem, encode=both, classes=("no", "yes"))
    assert black_box.inside is None


def test_where_a_network_can_reach_nothing_that_shows_long_before_everything_is_asked():
    grown = member(10, 2, seed=0)
    planner = ExactPlanner(grown.problem, grown.black_box)
    out_of_reach = Limits(margin=0.5 - 1e-12)
    certificate = planner.plan(grown.states[1], grown.weights[1], out_of_reach).certificate
    assert certificate.verdict == "infeasible"
    assert certificate.looked_into == grown.black_box.inside.what
    assert certificate.rows < grown.black_box.inside.worth_after / 2


def test_the_end_of_a_plan_is_compared_however_many_states_were_asked_with_it(monkeypatch):
    compared, agrees = [], WhiteBox.agrees

    def remembered(self, states, scores):
        compared.extend(map(tuple, states))
        return agrees(self, states, scores)

    monkeypatch.setattr(WhiteBox, "agrees", remembered)
    grown = member(10, 2, seed=0)
    black_box = grown.black_box
    black_box.inside = replace(black_box.inside, worth_after=3_000.0, scored_after=np.inf)
    planner = ExactPlanner(grown.problem, black_box, first_batch=8_192)
    plan = planner.plan(grown.states[1], grown.weights[1])
    end = walk(grown.states[1], grown.problem.actions, plan.moves)[-1]
    assert plan.certificate.looked_into == black_box.inside.what
    assert tuple(end) in compared
