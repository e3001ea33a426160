"""The conversation: what is said goes in, questions and plans come out.

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
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pandas as pd

from pear.arrays import Floats
from pear.elicitation.notebook import plot_session, said_frame
from pear.elicitation.questions import (
    View,
    loosenings,
    plans_shown,
    questions_left,
    rebuilt,
    shorter_plans,
    start_posterior,
    surprise_of,
    urgent_first,
    view_of,
)
from pear.elicitation.says import (
    FORMAT,
    Accepted,
    Allowed,
    Answered,
    Corrected,
    Excluded,
    LimitsSet,
    Position,
    Said,
    Undone,
    carried,
    check_seed,
    fold,
    prior_fingerprint,
    read_choice,
    read_stored,
    steps_done,
)
from pear.elicitation.settings import Settings, changed
from pear.elicitation.shown import Question, Result, Standing, differences
from pear.errors import ConversationError, FingerprintMismatch, InvalidInput
from pear.planning.planner import Memory, Planner, confirm
from pear.planning.reasons import explain
from pear.preferences import Chosen, GaussianMixturePrior, Posterior, default_prior
from pear.problem import NO_LIMITS, Certificate, Limits, Plan
from pear.problem.features import PersonLike, Value
from pear.problem.limits import Limit, as_limits
from pear.problem.notebook import html_table
from pear.problem.values import check_type, is_whole

SURPRISED = 3.0
"""Above this surprise, in standard deviations, a person is unlike everybody we know of."""


class Session:
    """A conversation with one person, over any planner.

    Parameters
    ----------
    planner
        Finds the plans; it may serve many conversations at once.
    person
        A record, a row of a table, a table of one row, or a state ``(d,)``.
    prior
        What is believed at first; left out: what the problem's own ranges and kinds of people say.
    settings
        Given whole, or single ones by name.
    seed
        The same seed and answers give the same conversation.
    limits
        What the person cannot do from the start.

    Raises
    ------
    InvalidRecord, InvalidSetting
        Where the person, the limits or a setting do not fit, or the prior has other weights.

    Examples
    --------
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
        person: PersonLike,
        prior: GaussianMixturePrior | None = None,
        *,
        settings: Settings | None = None,
        seed: int = 0,
        limits: Limits = NO_LIMITS,
        **changes: Any,
    ) -> None:
        check_type("planner", planner, Planner)
        check_type("limits", limits, Limits)
        self.planner = planner
        self.prior = prior or default_prior(planner.problem)
        check_type("prior", self.prior, GaussianMixturePrior)
        self.settings = changed(settings or Settings(), changes)
        self.seed = check_seed(seed)
        self.first_limits = limits
        self._first = Position.first(planner.problem.state(person), limits)
        planner.problem.actions.allowed(self._first.start[None], limits)
        planner.problem.costs.check_weights(self.prior.mean())
        self.events: tuple[Said, ...] = ()
        self.position = self._first
        # Invariant: entry i is what i answers lead to, the memory by then and the start it is of.
        self._beliefs: list[tuple[Posterior, Memory | None, bytes]] = [
            (start_posterior(self.prior, self.settings, self._rng(0)), None, b"")
        ]
        self._views: dict[bytes, View] = {}

    # What a person says

    def say(self, said: Said) -> None:
        """Take in one thing said; what cannot be said now is refused and changes nothing."""
        said.check(self.planner.problem, self.position)
        events = said.added_to(self.events)
        position = fold(self.planner.problem, self._first, events)
        if isinstance(said, Answered):
            beliefs = [*self._beliefs[: self.n_answers + 1], self._belief_after(said)]
        else:
            beliefs = self._beliefs[: len(position.answers) + 1]
        self.events, self.position, self._beliefs = events, position, beliefs
        self._views.clear()

    def answer(self, choice: int | Literal["same", "none"]) -> None:
        """Take in the answer to the question asked: a plan's place from 0, ``same`` or ``none``."""
        question = self.ask()
        if question is None:
            raise ConversationError("no question is open; nothing was answered")
        answer = read_choice(choice, len(question.plans))
        state = tuple(self.question_state().tolist())
        self.say(Answered(answer, state, tuple(plan.moves for plan in question.plans)))

    def exclude(
        self,
        *,
        feature: str | None = None,
        action: str | None = None,
        value: tuple[str, Value] | None = None,
    ) -> None:
        """ "I can't do this": a hard limit from now on, never a preference."""
        limits = self._limits_named(feature, action, value)
        if all(limit in self.position.limits for limit in limits):
            limits = ()
        self.say(Excluded(tuple(limit.checked(self.planner.problem) for limit in limits)))

    def allow(
        self,
        *,
        feature: str | None = None,
        action: str | None = None,
        value: tuple[str, Value] | None = None,
    ) -> None:
        """Lift a limit again."""
        self.say(Allowed(self._limits_named(feature, action, value)))

    def set_limits(self, limits: Limits) -> None:
        """Put these limits in place of the present ones."""
        self.say(LimitsSet(limits))

    def undo(self) -> None:
        """Take back the last thing said."""
        self.say(Undone())

    def accept(self, choice: int | None = None) -> Plan:
        """ "This one is fine": end with a plan of the open question, or with the best so far."""
        question = self.ask() if choice is not None else None
        if choice is None:
            plan = self._settled().plan
        elif question is None or not is_whole(choice) or not 0 <= choice < len(question.plans):
            raise ConversationError(f"there is no plan {choice!r} in an open question to accept")
        elif not np.array_equal(self.question_state(), self.start, equal_nan=True):
            raise ConversationError(
                "the open question is about plans from a later state; accept the best plan so far"
            )
        else:
            plan = question.plans[choice]
        if not plan.success:
            raise ConversationError("there is no plan to accept; lift a limit or end without one")
        confirm(self.planner.problem, self.planner.black_box, [plan])
        self.say(Accepted(plan.moves))
        return plan

    def done(self, steps: int = 1) -> None:
        """ "I have done the first steps of my plan"; the rest is planned from there."""
        self.say(steps_done(self._settled().plan, steps))

    def correct(self, record: Mapping[str, Any]) -> None:
        """ "My data are these"; what was said about preferences and limits is kept."""
        self.say(Corrected(dict(record), planned=self.finished))

    def _limits_named(
        self, feature: str | None, action: str | None, value: tuple[str, Value] | None
    ) -> tuple[Limit, ...]:
        space, found = self.planner.problem.space, []
        if feature is not None:
            space.index(feature)
            found.append(Limit("feature", feature))
        if action is not None:
            found.append(Limit("action", action=action))
        if value is not None:
            known = space[value[0]]
            found.append(Limit("value", known.name, known.value(known.code(value[1]))))
        return tuple(found)

    # What stands

    def __repr__(self) -> str:
        counts = [(self.n_answers, "answer"), (len(self.position.limits), "limit")]
        parts = [f"{n} {name}" if n == 1 else f"{n} {name}s" for n, name in counts]
        return f"Session({', '.join([*parts, *(['plan accepted'] if self.finished else [])])})"

    def to_frame(self) -> pd.DataFrame:
        """Everything said that still stands, a row each, with the plans offered in words."""
        return said_frame(self)

    def _repr_html_(self) -> str:
        return html_table(repr(self), self.to_frame())

    def plot(self, axes: Any = None) -> Any:
        """What each change is believed to cost, before and after the answers; needs matplotlib.

        Returns
        -------
        matplotlib.axes.Axes
            The ``axes`` given, else new ones.
        """
        return plot_session(self, axes)

    @property
    def start(self) -> Floats:
        """The person ``(d,)`` as they are now."""
        return self.position.start

    @property
    def limits(self) -> Limits:
        """The person's own limits at this point."""
        position = self.position
        return as_limits(position.limits, self.planner.problem, position.start, position.rest)

    @property
    def n_answers(self) -> int:
        return len(self.position.answers)

    @property
    def finished(self) -> bool:
        """Whether the person has accepted a plan."""
        return self.position.accepted is not None

    def accepted(self) -> Plan | None:
        """The plan the person accepted; None while the conversation goes on."""
        return self._settled().plan if self.finished else None

    def question_state(self) -> Floats:
        """The state ``(d,)`` the open question starts from."""
        return self._view().state if self.settings.advance else self.start

    @property
    def posterior(self) -> Posterior:
        """What is believed about the person's weights."""
        return self._beliefs[self.n_answers][0]

    def ask(self) -> Question | None:
        """The next question; the same one until it is answered. None: nothing worth asking."""
        if self.finished or self.n_answers >= self.settings.max_questions:
            return None
        view = self._view()
        if not self._worth_asking(view):
            return None
        plans = tuple(view.pool.plans[column] for column in view.chosen)
        left = self._questions_left(view.gain)
        number = self.n_answers + 1
        return Question(number, plans, differences(plans), view.gain, left, view.efforts)

    def best(self) -> Plan | None:
        """The plan of the pool with the least expected cost, as in :meth:`recommend`, if any."""
        view = self._view(at_start=True)
        if not len(view.pool):
            return None
        costs = view.pool.costs(self._anybody()).mean(axis=0) if self.unlike else view.expected
        return view.pool.plans[int(np.argmin(np.round(costs, 9)))]

    def so_far(self) -> Result | None:
        """The best plan so far and how sure we are, without a new search; None without a plan."""
        plan = self.best()
        return None if plan is None else self._result(plan)

    def recommend(self, proof: Planner | None = None) -> Result:
        """The plan of least expected cost by what the person told us, with its certificate.

        For answers that fit nobody we know, that of least cost for anybody: one good for many.
        Where the session's own planner proves nothing, one with a larger budget may: ``proof``.
        """
        view = self._view(at_start=True)
        # Algorithm 1 ends with the plan for the mean weight, ours with that of least mean cost.
        weights = self.posterior.mean() if self.settings.pool == "mean" else view.draws
        if self.unlike:
            weights = self._anybody()
        rng = self._rng(self.n_answers, 4)
        plan = self.planner.plan(self.start, weights, limits=self.limits, rng=rng)
        if proof is not None and plan.certificate.verdict not in ("optimal", "infeasible"):
            longer = proof.plan(self.start, weights, limits=self.limits, rng=rng)
            plan = longer if longer.success or not plan.success else plan
        if not plan.success and (found := self.best()) is not None:
            plan = found
        [plan] = urgent_first(self.planner, self.start, [plan])
        return self._result(plan)

    @property
    def unlike(self) -> bool:
        """Whether the answers fit nobody we know; one unlike anyone before is believed."""
        stranger = self.prior.background
        known = stranger is None or self.posterior.component_shares()[stranger] < 0.5
        return bool(known and self.surprise > SURPRISED)

    def _anybody(self) -> Floats:
        """Weights of anybody of the prior, shape ``(n, p)``."""
        return self._beliefs[0][0].draw(self.settings.draws, self._rng(0, 5))

    @property
    def surprise(self) -> float:
        """How far the choices are from what anybody we know would choose, in standard deviations.

        About 0 for people like those of the prior, above 3 for hardly any of them.
        """
        beliefs = [posterior for posterior, _, _ in self._beliefs]
        return surprise_of(self.planner.problem, self.position.answers, beliefs)

    def result(self, proof: Planner | None = None) -> Result:
        """The plan accepted, else the recommended one, with its reasons, shorter alternatives,
        and, where there is none, what stands in the way.

        A plan that the person said "none of these" to is not recommended again: the best other
        one known takes its place, and where there is no other, there is none.
        """
        found = self._settled(proof)
        plan, problem = found.plan, self.planner.problem
        if not plan.success:
            position = self.position
            opened = loosenings(
                self.planner, self.start, self.posterior.mean(), position.limits, position.rest
            )
            return replace(found, loosenings=opened)
        if not plan.steps:
            return found
        weights = self.posterior.mean()
        confirm(problem, self.planner.black_box, [plan])
        told = explain(problem, self.planner.black_box, plan, weights, self.limits)
        draws = self._view(at_start=True).draws
        shorter = shorter_plans(self.planner, self.start, draws, self.limits, plan)
        return replace(
            found,
            reasons=told.reasons,
            alternatives=tuple(replace(other, weights=()) for other in shorter),
        )

    def standing(self, proof: Planner | None = None) -> Standing:
        """Where the conversation stands: everything a person sees of it."""
        goal, position = self.planner.problem.goal, self.position
        standing = Standing(
            stage="favourable",
            score=float(self.planner.black_box.score(self.start[None])[0]),
            required=goal.required(self.limits),
            answered=self.n_answers,
            limits=self.position.limits,
            done=self.position.done,
        )
        if standing.favourable and not self.n_answers and not self.finished:
            return standing
        question = None if standing.favourable else self.ask()
        if question is not None:
            return replace(standing, stage="question", question=question)
        found = self.result(proof)
        refused = not found.plan.success and any(answer.refused for answer in position.answers)
        return replace(
            standing,
            stage="plan" if found.plan.success else "no_plan",
            result=found,
            refused_before=refused and found.plan.certificate.verdict == "unknown",
        )

    def _settled(self, proof: Planner | None = None) -> Result:
        """The result about the plan accepted, else about the best one that was never refused."""
        return self._not_refused(self._chosen(self.recommend(proof)))

    def _not_refused(self, best: Result) -> Result:
        """The result, or the best one about a plan that was never refused."""
        if not best.plan.success or not best.plan.steps or self.position.accepted:
            return best
        shown, view = plans_shown(self._answers_at(self.start)), self._view(at_start=True)
        if shown.get(best.plan.moves, True):
            return best
        open_plans = [
            (view.expected[i], i)
            for i, plan in enumerate(view.pool.plans)
            if shown.get(plan.moves, True)
        ]
        if open_plans:
            moves = view.pool.plans[min(open_plans)[1]].moves
            return self._result(self._rebuilt(moves))
        return self._result(self._rebuilt(()).with_certificate(Certificate("unknown")))

    def _chosen(self, best: Result) -> Result:
        """The result about the plan the person accepted, where that is not the best."""
        moves = self.position.accepted
        if not moves or moves == best.plan.moves:
            return best
        return self._result(self._rebuilt(moves))

    def _rebuilt(self, moves: tuple[int, ...]) -> Plan:
        """A plan from the start by its moves, priced by the mean weights."""
        [plan] = rebuilt(self.planner, self.start, [moves], self.posterior.mean(), self.limits)
        return plan

    def _result(self, plan: Plan) -> Result:
        view = self._view(at_start=True)
        sure = view.confidence(plan, self.planner.problem)
        left = self._questions_left(view.gain)
        return Result(plan, sure, left, view.gain, unlike=self.unlike)

    def _worth_asking(self, view: View) -> bool:
        return len(view.chosen) >= 2 and view.gain >= max(self.settings.min_gain, 1e-9)

    def _questions_left(self, gain: float) -> int:
        return questions_left(gain, self.n_answers, self.settings)

    # Stored and resumed

    def to_dict(self) -> dict[str, Any]:
        """Everything the conversation is, as plain data."""
        return {
            "format": FORMAT,
            "seed": self.seed,
            "settings": self.settings.to_dict(),
            "problem_fingerprint": self.planner.problem.fingerprint,
            "model_fingerprint": self.planner.black_box.fingerprint,
            "prior_fingerprint": prior_fingerprint(self.prior),
            "person": self.planner.problem.space.decode(self._first.start)[0],
            "limits": self.first_limits.to_dict(),
            "events": [event.to_dict() for event in self.events],
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
        if not isinstance(data, Mapping) or "events" not in data:
            raise ConversationError("this is not a stored conversation: it has no 'events'")
        for name, present in (
            ("problem", planner.problem.fingerprint),
            ("model", planner.black_box.fingerprint),
            ("prior", prior_fingerprint(prior)),
        ):
            stored = data.get(f"{name}_fingerprint")
            if stored != present:
                raise FingerprintMismatch(
                    f"the conversation was held with another {name} (fingerprint {stored}, "
                    f"this one is {present}); start a new one"
                )
        session, events = cls._begun(data, planner, prior)
        for event in events:
            session.say(event)
        return session

    @classmethod
    def from_json(
        cls, text: str, planner: Planner, prior: GaussianMixturePrior | None = None
    ) -> Session:
        """The conversation stored by :meth:`to_json`."""
        try:
            data = json.loads(text)
        except (json.JSONDecodeError, RecursionError) as error:
            raise ConversationError(f"the stored conversation is not JSON: {error}") from None
        return cls.from_dict(data, planner, prior)

    @classmethod
    def carried_over(
        cls, data: Any, planner: Planner, prior: GaussianMixturePrior | None = None
    ) -> tuple[Session, tuple[Mapping[str, Any], ...]]:
        """A conversation that was held with another problem, model or prior, and what is lost.

        All that was said about this very problem keeps its meaning under another model. Under
        another problem a plan's moves are other steps: answers and the plan accepted are lost,
        and so is what names a feature, action or value that is gone. A person whose record no
        longer fits cannot be carried over: ConversationError.
        """
        prior = prior or default_prior(planner.problem)
        same = data.get("problem_fingerprint") == planner.problem.fingerprint
        session, _ = cls._begun({**data, "events": []}, planner, prior)
        kept, lost = carried(planner.problem, session.position, data["events"], same=same)
        for said in kept:
            session.say(said)
        return session, lost

    @classmethod
    def _begun(
        cls, data: Mapping[str, Any], planner: Planner, prior: GaussianMixturePrior
    ) -> tuple[Session, tuple[Said, ...]]:
        """A session about a stored person, and what they said, yet to be taken in."""
        stored = read_stored(data, planner.problem)
        try:
            settings, seed = Settings.from_dict(data["settings"]), check_seed(data["seed"])
            limits = Limits.from_dict(data["limits"])
        except InvalidInput as error:
            raise ConversationError(f"the stored conversation cannot be read: {error}") from None
        except (KeyError, TypeError, ValueError) as error:
            raise ConversationError(f"the stored conversation cannot be read: {error!r}") from None
        session = cls(planner, stored.person, prior, settings=settings, seed=seed, limits=limits)
        return session, stored.events

    # Derived

    def _belief_after(self, said: Answered) -> tuple[Posterior, Memory | None, bytes]:
        posterior, memory, of = self._beliefs[self.n_answers]
        # A memory is of one state: what was asked elsewhere says nothing about the start.
        if np.array_equal(said.state, self.start, equal_nan=True):
            memory, of = self._view(at_start=True).memory, self.start.tobytes()
        question = said.question(self.planner.problem)
        return posterior.update(question, said.answer, self._rng(self.n_answers, 1)), memory, of

    def _advanced(self) -> Floats:
        """The paper's state: after the first step of the last plan chosen.

        It starts anew where that reaches the goal, and when the person's limits change: a
        step taken before might be one they rule out.
        """
        last = self.position.chosen
        if last is None:
            return self.start
        assert isinstance(last.answer, Chosen)
        first = np.array([last.plans[last.answer.plan][0]])
        state = self.planner.problem.actions.apply(np.array([last.state], float), first)[0]
        reached = self.planner.black_box.favourable(state[None], self.limits)[0]
        return self.start if reached else state

    def _view(self, at_start: bool = False) -> View:
        """The view at the start, or that of the next question: where the conversation has
        advanced to while something is worth asking there, else at the start again."""
        if at_start or not self.settings.advance:
            return self._view_from(self.start)
        view = self._view_from(self._advanced())
        return view if self._worth_asking(view) else self._view_from(self.start)

    def _view_from(self, state: Floats) -> View:
        key = state.tobytes()
        if key not in self._views:
            posterior, memory, of = self._beliefs[self.n_answers]
            self._views[key] = view_of(
                self.planner,
                state,
                posterior,
                self.settings,
                self.limits,
                self._answers_at(state),
                self._rng(self.n_answers, 2),
                memory=memory if of == key else None,
            )
        return self._views[key]

    def _answers_at(self, state: Floats) -> list[Answered]:
        """The answers to questions asked from this state."""
        answers = self.position.answers
        return [said for said in answers if np.array_equal(said.state, state, equal_nan=True)]

    def _rng(self, *purpose: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, *purpose])
