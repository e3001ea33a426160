"""The conversation: ask, answer, undo, recommend.

A session *is* its seed, its settings, the fingerprints of problem and model, the person's
record and the list of events. Posterior, pools and questions are derived from them, each
random choice from a generator keyed by the seed and the number of answers before it, so a
session stored as JSON resumes exactly, and an undone answer given again leads to the same
place.

References: paper, algorithm 1.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pear.elicitation.belief import View, rebuilt, start_posterior, view_of
from pear.elicitation.differences import differences
from pear.elicitation.settings import Settings, changed
from pear.elicitation.stored import (
    FORMAT,
    check_person,
    check_seed,
    check_stored,
    prior_fingerprint,
)
from pear.elicitation.turns import (
    ChoiceSet,
    Recommendation,
    fewer_limits,
    more_limits,
    read_choice,
)
from pear.errors import ConversationError
from pear.planning.planner import Planner
from pear.preferences import (
    GaussianMixturePrior,
    Posterior,
    Question,
    answer_from_dict,
    answer_to_dict,
    default_prior,
)
from pear.problem import NO_LIMITS, Limits, Plan
from pear.problem.checks import is_whole
from pear.problem.features import Value

Floats = NDArray[np.float64]


class Session:
    """A conversation with one person, over any planner.

    ``person`` is a record (a mapping of feature names to values) or a state ``(d,)``. Without
    a prior the problem's own expert ranges are taken. ``settings`` may be given whole, or
    single ones by name.

    >>> from pear.datasets import loan_book_classifier, loan_book_people, loan_book_problem
    >>> from pear.planning.exact import ExactPlanner
    >>> problem = loan_book_problem()
    >>> planner = ExactPlanner(problem, loan_book_classifier(problem))
    >>> session = Session(planner, loan_book_people()["Amina"], k=3)
    >>> question = session.ask()
    >>> [plan.success for plan in question.plans]
    [True, True, True]
    >>> session.answer(1)
    >>> session.recommend().plan.certificate.verdict
    'optimal'
    """

    def __init__(
        self,
        planner: Planner,
        person: Mapping[str, Any] | Floats,
        prior: GaussianMixturePrior | None = None,
        *,
        settings: Settings | None = None,
        seed: int = 0,
        limits: Limits = NO_LIMITS,
        **changes: Any,
    ) -> None:
        self.planner = planner
        self.prior = prior or default_prior(planner.problem)
        self.settings = changed(settings or Settings(), changes)
        self.seed = check_seed(seed)
        self.start: Floats = check_person(planner.problem, person)
        self.first_limits = limits
        self._check_limits(limits)
        self.events: tuple[dict[str, Any], ...] = ()
        planner.problem.costs.check_weights(self.prior.mean())
        # Invariant: entry i is what i answers lead to, and the survey of the start by then.
        self._beliefs: list[tuple[Posterior, Any]] = [
            (start_posterior(self.prior, self.settings, self._rng(0)), None)
        ]
        self._views: dict[bytes, View] = {}

    # What a person can say

    def ask(self) -> ChoiceSet | None:
        """The next question; the same one until it is answered. None: nothing worth asking."""
        if self.finished or self.n_answers >= self.settings.max_questions:
            return None
        view = self._view()
        if not self._worth_asking(view):
            return None
        plans = tuple(view.pool.plans[column] for column in view.chosen)
        space = self.planner.problem.space
        return ChoiceSet(self.n_answers + 1, plans, differences(plans, space), view.gain)

    def answer(self, choice: int | Literal["same", "none"]) -> None:
        """Take in the answer to the question asked: a plan's place from 0, ``same`` or ``none``."""
        question = self.ask()
        if question is None:
            raise ConversationError("no question is open; nothing was answered")
        answer = read_choice(choice, len(question.plans))
        event = {
            "kind": "answer",
            "answer": answer_to_dict(answer),
            "state": self.question_state.tolist(),
            "plans": [list(plan.moves) for plan in question.plans],
        }
        self._append(event)

    def exclude(
        self,
        *,
        feature: str | None = None,
        action: str | None = None,
        value: tuple[str, Value] | None = None,
    ) -> None:
        """ "I can't do this": a hard limit from now on, never a preference."""
        limits = more_limits(self.planner.problem, self.limits, feature, action, value)
        if limits == self.limits:
            raise ConversationError(
                "nothing new was excluded; name a feature, an action or a value"
            )
        self.set_limits(limits)

    def allow(
        self,
        *,
        feature: str | None = None,
        action: str | None = None,
        value: tuple[str, Value] | None = None,
    ) -> None:
        """Lift a limit again."""
        limits = fewer_limits(self.planner.problem, self.limits, feature, action, value)
        if limits == self.limits:
            raise ConversationError("there is no such limit to lift")
        self.set_limits(limits)

    def set_limits(self, limits: Limits) -> None:
        """Put these limits in place of the present ones."""
        self._append({"kind": "limits", "limits": limits.to_dict()})

    def undo(self) -> None:
        """Take back the last thing said."""
        if not self.events:
            raise ConversationError("there is nothing to take back")
        self.events = self.events[:-1]
        del self._beliefs[self.n_answers + 1 :]
        self._views.clear()

    def accept(self, choice: int | None = None) -> Plan:
        """ "This one is fine": end with a plan of the open question, or with the best so far."""
        question = self.ask() if choice is not None else None
        if choice is None:
            plan = self.recommend().plan
        elif question is None or not is_whole(choice) or not 0 <= choice < len(question.plans):
            raise ConversationError(f"there is no plan {choice!r} in an open question to accept")
        elif not np.array_equal(self.question_state, self.start, equal_nan=True):
            raise ConversationError(
                "the open question is about plans from a later state; accept the best plan so far"
            )
        else:
            plan = question.plans[choice]
        if not plan.success:
            raise ConversationError("there is no plan to accept; lift a limit or end without one")
        self._append({"kind": "accept", "moves": list(plan.moves)})
        return plan

    # What stands

    @property
    def limits(self) -> Limits:
        """The person's own limits at this point."""
        for event in reversed(self.events):
            if event["kind"] == "limits":
                return Limits.from_dict(event["limits"])
        return self.first_limits

    @property
    def n_answers(self) -> int:
        return sum(event["kind"] == "answer" for event in self.events)

    @property
    def finished(self) -> bool:
        """Whether the person has accepted a plan."""
        return any(event["kind"] == "accept" for event in self.events)

    @property
    def accepted(self) -> Plan | None:
        """The plan the person accepted; None while the conversation goes on."""
        for event in self.events:
            if event["kind"] == "accept":
                best, moves = self.recommend().plan, tuple(event["moves"])
                if not moves or best.moves == moves:
                    return best
                weights = self.posterior.mean()
                return rebuilt(self.planner, self.start, moves, weights, self.limits)
        return None

    @property
    def question_state(self) -> Floats:
        """The state ``(d,)`` the open question starts from."""
        return self._view().state if self.settings.advance else self.start

    @property
    def posterior(self) -> Posterior:
        """What is believed about the person's weights."""
        return self._beliefs[self.n_answers][0]

    def best(self) -> Plan | None:
        """The plan of the pool with the least expected cost; None where no plan was found."""
        view = self._view(at_start=True)
        return view.pool.plans[view.best] if len(view.pool) else None

    def standing(self) -> Recommendation | None:
        """The best plan so far and how sure we are, without a new search; None without a plan."""
        view = self._view(at_start=True)
        plan = self.best()
        if plan is None:
            return None
        sure = view.confidence(plan, self.planner.problem)
        return Recommendation(plan, sure, self._questions_left(view.gain), view.gain)

    def recommend(self) -> Recommendation:
        """The plan of least expected cost by what the person told us, with its certificate."""
        view = self._view(at_start=True)
        # Algorithm 1 ends with the plan for the mean weight, ours with that of least mean cost.
        weights = self.posterior.mean() if self.settings.pool == "mean" else view.draws
        plan = self.planner.plan(
            self.start, weights, limits=self.limits, rng=self._rng(self.n_answers, 4)
        )
        if not plan.success and len(view.pool):
            plan = view.pool.plans[view.best]
        sure = view.confidence(plan, self.planner.problem)
        return Recommendation(plan, sure, self._questions_left(view.gain), view.gain)

    def _worth_asking(self, view: View) -> bool:
        return len(view.chosen) >= 2 and view.gain >= max(self.settings.min_gain, 1e-9)

    def _questions_left(self, gain: float) -> int:
        """Questions until the gain is below the threshold if each divides it by k."""
        most = self.settings.max_questions - self.n_answers
        if self.finished or most <= 0 or gain < max(self.settings.min_gain, 1e-9):
            return 0
        if self.settings.min_gain == 0:
            return most
        rounds = np.log(gain / self.settings.min_gain) / np.log(self.settings.k)
        return int(min(most, 1 + np.ceil(rounds)))

    def to_dict(self) -> dict[str, Any]:
        """Everything the conversation is, as plain data."""
        return {
            "format": FORMAT,
            "seed": self.seed,
            "settings": self.settings.to_dict(),
            "problem_fingerprint": self.planner.problem.fingerprint,
            "model_fingerprint": self.planner.black_box.fingerprint,
            "prior_fingerprint": prior_fingerprint(self.prior),
            "person": self.planner.problem.space.decode(self.start)[0],
            "limits": self.first_limits.to_dict(),
            "events": [dict(event) for event in self.events],
        }

    def to_json(self) -> str:
        """The conversation as JSON text."""
        return json.dumps(self.to_dict(), ensure_ascii=False)

    @classmethod
    def from_dict(
        cls, data: Any, planner: Planner, prior: GaussianMixturePrior | None = None
    ) -> Session:
        """The conversation stored by :meth:`to_dict`, where it was left."""
        prior = prior or default_prior(planner.problem)
        stored = check_stored(data, planner, prior)
        session = cls(
            planner,
            stored.person,
            prior,
            settings=stored.settings,
            seed=stored.seed,
            limits=stored.limits,
        )
        for event in stored.events:
            session._append(event)
        return session

    @classmethod
    def from_json(
        cls, text: str, planner: Planner, prior: GaussianMixturePrior | None = None
    ) -> Session:
        """The conversation stored by :meth:`to_json`."""
        try:
            data = json.loads(text)
        except json.JSONDecodeError as error:
            raise ConversationError(f"the stored conversation is not JSON: {error}") from None
        return cls.from_dict(data, planner, prior)

    # Derived

    def _append(self, event: dict[str, Any]) -> None:
        if self.finished:
            raise ConversationError("the conversation has ended; undo first to go on")
        if event["kind"] == "limits":
            self._check_limits(Limits.from_dict(event["limits"]))
        if event["kind"] == "answer":
            number, survey = self.n_answers, self._beliefs[self.n_answers][1]
            # A survey is of one state: what was asked elsewhere says nothing about the start.
            if np.array_equal(event["state"], self.start, equal_nan=True):
                survey = self._view(at_start=True).survey
            answer = answer_from_dict(event["answer"])
            posterior = self.posterior.update(self._question(event), answer, self._rng(number, 1))
            self._beliefs[number + 1 :] = [(posterior, survey)]
        self.events = (*self.events, event)
        self._views.clear()

    def _check_limits(self, limits: Limits) -> None:
        self.planner.problem.actions.allowed(self.start[None], limits)

    def _question(self, event: Mapping[str, Any]) -> Question:
        problem, state = self.planner.problem, np.array(event["state"], float)
        plans = [problem.costs.sequence_features(state, problem.actions, m) for m in event["plans"]]
        return Question.from_plans(plans, problem.costs.floor)

    def _advanced(self) -> Floats:
        """The paper's state: after the first step of the last plan chosen.

        It starts anew where that reaches the goal, and when the person's limits change: a
        step taken before might be one they rule out.
        """
        actions = self.planner.problem.actions
        for event in reversed(self.events):
            if event["kind"] == "limits":
                break
            if event["kind"] == "answer" and event["answer"]["kind"] == "chosen":
                first = event["plans"][event["answer"]["plan"]][0]
                state = actions.apply(np.array([event["state"]], float), np.array([first]))[0]
                reached = self.planner.black_box.favourable(state[None], self.limits)[0]
                return self.start if reached else state
        return self.start

    def _view(self, at_start: bool = False) -> View:
        """The view at the start, or that of the next question: where the conversation has
        advanced to while something is worth asking there, else at the start again."""
        if at_start or not self.settings.advance:
            return self._view_from(self.start)
        view = self._view_from(self._advanced())
        return view if self._worth_asking(view) else self._view_from(self.start)

    def _view_from(self, state: Floats) -> View:
        key, at_start = state.tobytes(), np.array_equal(state, self.start, equal_nan=True)
        if key not in self._views:
            self._views[key] = view_of(
                self.planner,
                state,
                self.posterior,
                self.settings,
                self.limits,
                self._shown(state),
                self._rng(self.n_answers, 2),
                survey=self._beliefs[self.n_answers][1] if at_start else None,
            )
        return self._views[key]

    def _shown(self, state: Floats) -> dict[tuple[int, ...], bool]:
        """Plans asked about in this state before, and whether they may be asked about again."""
        shown: dict[tuple[int, ...], bool] = {}
        for event in self.events:
            if event["kind"] == "answer" and np.array_equal(event["state"], state, equal_nan=True):
                refused = event["answer"]["kind"] == "none_of_these"
                for moves in event["plans"]:
                    shown[tuple(moves)] = shown.get(tuple(moves), True) and not refused
        return shown

    def _rng(self, *purpose: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, *purpose])
