"""A conversation with somebody for whom every plan is hard to find."""

from dataclasses import replace

import numpy as np

from pear.elicitation import Session, Settings
from pear.planning.exact import ExactPlanner
from pear.preferences import GaussianMixturePrior
from tests.elicitation.small_lender import PERSON, lender, prior
from tests.planning.exact.test_hard_people import plateau, weights_of, with_decoys


def test_the_pool_of_a_hard_person_holds_the_plan_for_the_mean_weights():
    """Half of the budget is for the mean weights; with many samples at once it is lost."""
    problem = with_decoys("xyz", 6)
    planner = ExactPlanner(problem, plateau(problem, 3), max_rows=16_000)
    prior = GaussianMixturePrior(weights_of(3)[None], np.ones((1, 15)), np.ones(1))
    session = Session(planner, np.zeros(15), prior, settings=Settings(min_gain=0.0), seed=0)
    session.ask()
    best = session.best()
    assert best is not None
    mean, start = prior.mean(), np.zeros(15)
    cost = problem.costs.sequence_cost(start, problem.actions, best.moves, mean)
    assert cost <= planner.plan(start, mean).cost + 1e-6


class Overwhelmed(ExactPlanner):
    """Proves nothing for several samples at once, and finds one plan for all of them."""

    def candidates(self, person, samples, *args, **settings):
        found = super().candidates(person, samples, *args, **settings)
        if len(samples) == 1:
            return found
        certificate = replace(found.plans[-1].certificate, verdict="bounded", lower_bound=0.0)
        return replace(found, plans=(found.plans[-1].with_certificate(certificate),))


def test_samples_that_hold_each_other_up_are_searched_for_alone():
    usual = lender()
    planner = Overwhelmed(usual.problem, usual.black_box)
    session = Session(planner, PERSON, prior(), draws=12, n_particles=300)
    together = Session(usual, PERSON, prior(), draws=12, n_particles=300)
    asked = [{plan.moves for plan in each.ask().plans} for each in (session, together)]
    assert asked[0] == asked[1]
