"""How many questions until the plan is this person's cheapest, and how long does one take?

On the published Adult users (``PEAR_BENCH``): mean cost under the true weights above the
true optimum after each number of questions, for right, wide and wrong priors, both response
models, both state advances and both posteriors; latency from an answer to the next question.

    python benchmarks/elicitation.py [--quick] [--json FILE] [--workers N]
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from pear.datasets.published import (
    published_classifier,
    published_prior_means,
    published_problem,
    published_users,
)
from pear.elicitation import Session, Settings, SimulatedPerson, regret_table, simulate
from pear.elicitation.simulation import question_of
from pear.experiments.summary import published_curve, published_rows, user_costs
from pear.planning.exact import ExactPlanner
from pear.preferences import GaussianMixturePrior, Logistic, Noiseless, ResponseModel


@dataclass(frozen=True)
class Study:
    """One curve: who answers, what is believed, how it is asked."""

    name: str
    prior: GaussianMixturePrior
    weights: np.ndarray
    response: ResponseModel
    questions: int
    settings: Settings = field(default_factory=Settings)
    believed: ResponseModel | None = None
    """What the conversation believes of how people answer; else the truth."""
    hard: bool = False
    """Answered by the published set Hard in place of All."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="write flat names to numbers here")
    parser.add_argument("--quick", action="store_true", help="smaller side studies")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--people", type=int, default=300, help="fewer people, to try things out")
    parser.add_argument(
        "--only", help="run only the studies whose name holds this, or only `latency`"
    )
    arguments = parser.parse_args()
    threadpool_limits(1)

    problem = published_problem("adult")
    planner = ExactPlanner(problem, published_classifier(problem))
    users = published_users(problem)
    hard = published_users(problem, users="hard")
    states, weights = users.states[: arguments.people], users.weights[: arguments.people]
    means = published_prior_means("adult")
    rng = np.random.default_rng(20)
    right = GaussianMixturePrior(means, np.ones_like(means))
    wide = GaussianMixturePrior(
        means.mean(axis=0)[None], means.var(axis=0)[None], background_weight=0.0
    )
    wide_people = wide.sample(len(states), rng)[0]
    strangers = means.mean(axis=0) + means.std(axis=0) * rng.standard_normal(weights.shape)
    strangers += rng.standard_normal(weights.shape)
    careful, paper, noisy = Noiseless(), Logistic(0.9), Logistic(0.05)
    two, four = Settings(k=2), Settings(k=4)
    studies = [
        Study("k2_noiseless", right, weights, careful, 10, two),
        Study("k4_noiseless", right, weights, careful, 4, four),
        Study("adult_hard", right, hard.weights, careful, 5, two, hard=True),
        Study("k2_logistic", right, weights, paper, 10, two),
        Study("k4_logistic", right, weights, paper, 4, four),
        Study("k2_logistic_unknown", right, weights, paper, 5, two, believed=Settings().response),
        Study("wide_k2", wide, wide_people, careful, 8, two),
        Study("wide_noisy_k4", wide, wide_people, noisy, 8, four),
        Study("wrong_prior", right, strangers, careful, 10, two),
        Study("wrong_prior_plain", right.with_background(0.0), strangers, careful, 10, two),
        Study("no_background", right.with_background(0.0), weights, careful, 5, two),
        Study("advance", right, weights, careful, 10, replace(two, advance=True)),
        Study("slices", right, weights, careful, 4, replace(two, posterior="slices")),
    ]
    if arguments.only:
        studies = [study for study in studies if arguments.only in study.name]
    side = {"wrong_prior_plain", "no_background", "advance", "slices", "k4_logistic"}
    curves: dict[str, pd.DataFrame] = {}
    for study in studies:
        share = 10 if arguments.quick and study.name in side else 1
        if study.name == "slices":
            share = 10
        began = time.monotonic()
        rows = simulate(
            planner,
            (hard.states if study.hard else states)[: len(states) : share],
            study.weights[: len(states) : share],
            study.prior,
            response=study.response,
            believed=study.believed,
            settings=study.settings,
            n_questions=study.questions,
            workers=arguments.workers,
        )
        curves[study.name] = regret_table(rows)
        print(f"\n{study.name} ({len(states[::share])} people, {time.monotonic() - began:.0f} s)")
        print(curves[study.name].round(4).to_string(), flush=True)
    figures = headline(curves)
    if not arguments.only or arguments.only == "latency":
        figures |= latency(planner, right, states, weights)
    if not arguments.only:
        print_published(curves)
    for name, value in figures.items():
        print(f"{name:32s} {value:.4f}")
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n")


def headline(curves: dict[str, pd.DataFrame]) -> dict[str, float]:
    """The figures the project is held to: excess over the true optimum, as fractions."""
    wanted = {
        "excess.k2_noiseless_3": ("k2_noiseless", 3),
        "excess.k2_noiseless_4": ("k2_noiseless", 4),
        "excess.k2_noiseless_5": ("k2_noiseless", 5),
        "excess.k4_noiseless_2": ("k4_noiseless", 2),
        "excess.adult_hard_4": ("adult_hard", 4),
        "excess.k2_logistic_5": ("k2_logistic", 5),
        "excess.k2_logistic_unknown_5": ("k2_logistic_unknown", 5),
        "excess.wide_k2_6": ("wide_k2", 6),
        "excess.wide_noisy_k4_8": ("wide_noisy_k4", 8),
        "excess.wrong_prior_10": ("wrong_prior", 10),
        "excess.wrong_prior_plain_10": ("wrong_prior_plain", 10),
        "excess.no_background_5": ("no_background", 5),
        "excess.advance_4": ("advance", 4),
        "excess.slices_4": ("slices", 4),
    }
    return {
        name: float(curves[study].loc[questions, "excess"])
        for name, (study, questions) in wanted.items()
        if study in curves
    }


def latency(
    planner: ExactPlanner, prior: GaussianMixturePrior, states: np.ndarray, weights: np.ndarray
) -> dict[str, float]:
    """Milliseconds of processor time from an answer to the next question, and where they go."""
    whole, update, first = [], [], []
    for number in range(0, len(states), 2):
        rng = np.random.default_rng(number)
        person = SimulatedPerson(weights[number], Noiseless())
        began = time.process_time()
        session = Session(
            planner, states[number], prior, response=Noiseless(), min_gain=0.0, seed=number
        )
        asked = session.ask()
        first.append(time.process_time() - began)
        while asked is not None and session.n_answers < 6:
            choice = person.choose(question_of(session, asked.plans), rng)
            began = time.process_time()
            session.answer(choice)
            update.append(time.process_time() - began)
            asked = session.ask()
            whole.append(time.process_time() - began)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    figures = {
        "latency.p50_ms": float(np.median(whole) * 1e3),
        "latency.p95_ms": float(np.percentile(whole, 95) * 1e3),
        "latency.posterior_p95_ms": float(np.percentile(update, 95) * 1e3),
        "latency.posterior_share": float(np.sum(update) / np.sum(whole)),
        "latency.first_question_p95_ms": float(np.percentile(first, 95) * 1e3),
        "memory.peak_mb": float(peak),
    }
    print(
        "\nOf the time from an answer to the next question "
        f"{figures['latency.posterior_share']:.0%} is the posterior's, the rest planning for "
        "its samples and choosing the question."
    )
    return figures


def print_published(curves: dict[str, pd.DataFrame]) -> None:
    """Our curve beside the published system's, user costs without the STOP action."""
    print("\nmean cost after each number of questions, published system beside ours")
    for study, response, k in (
        ("k2_noiseless", "pear_nl", 2),
        ("k4_noiseless", "pear_nl", 4),
        ("k2_logistic", "pear_l", 2),
        ("k4_logistic", "pear_l", 4),
    ):
        ours = curves[study]
        costs = {
            asked: user_costs(
                published_rows("adult", "network", "all", response, k=k, questions=asked)
            ).mean()
            for asked in ours.index
        }
        table = pd.DataFrame(
            {
                "published": pd.Series(costs),
                "ours": ours["cost"],
                "optimum": ours["optimum"],
                "published regret (its rule)": published_curve("adult", response, k),
                "our normalised regret": ours["normalised_regret"],
            }
        )
        print(f"\n{study}\n{table.loc[ours.index].round(3).to_string()}")


if __name__ == "__main__":
    main()
