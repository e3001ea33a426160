"""What does a search process do for a conversation? The only file that speaks with sessions.

A conversation's session is its seed, its record, its limits and its answers. The engine
remembers the sessions it met last; one it does not remember is rebuilt from these.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pear.decision import BlackBox
from pear.elicitation import Result, Session
from pear.elicitation.settings import Settings as SessionSettings
from pear.errors import ConversationError, PearError
from pear.planning.exact import ExactPlanner
from pear.preferences import GaussianMixturePrior, default_prior
from pear.problem import Plan, Problem
from pear.service.limits import add_limit, as_limits, check_limit
from pear.service.settings import Settings
from pear.service.views import alternatives, card, differences, with_reasons

Snapshot = Mapping[str, Any]
"""A conversation as :func:`pear.service.conversations._snapshot` gives it."""

DRAWS = 32
"""Posterior samples that plans with fewer steps, and after lifted limits, are made for."""


class Engine:
    """Works out questions and plans. Plain data in, plain data out."""

    def __init__(
        self,
        problem: Problem,
        black_box: BlackBox,
        settings: Settings,
        prior: GaussianMixturePrior | None = None,
    ) -> None:
        self.problem, self.black_box = problem, black_box
        # Only the plan given needs a proof; plans to ask about or to compare with are found by
        # short searches, so that nobody waits long behind someone else's.
        self.planner = ExactPlanner(problem, black_box, max_rows=settings.max_rows)
        self.asking = ExactPlanner(problem, black_box, max_rows=settings.question_rows)
        self.prior = prior or default_prior(problem)
        self.settings = SessionSettings(k=settings.choices, max_questions=settings.max_questions)
        self._most = settings.cached_sessions
        self._sessions: OrderedDict[str, tuple[str, Session]] = OrderedDict()

    def facts(self) -> dict[str, Any]:
        """What the web process must know of the model."""
        return {
            "problem_fingerprint": self.problem.fingerprint,
            "model_fingerprint": self.black_box.fingerprint,
        }

    def decision(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """The model's score of a record, and whether it is favourable."""
        score = float(self.black_box.score(self.problem.state(record)[None])[0])
        return {"score": score, "favourable": score > self.problem.goal.bar()}

    def look(self, snapshot: Snapshot) -> dict[str, Any]:
        """The columns of a conversation that has not been worked out yet."""
        state, session = _state(snapshot), self._session(snapshot)
        columns = self._columns(state, session)
        self._remember(state, columns, session)
        return columns

    def act(self, snapshot: Snapshot, kind: str, content: Mapping[str, Any]) -> dict[str, Any]:
        """What one action changes: the event to keep, and the columns that follow."""
        do = getattr(self, f"_do_{kind}")
        state, session, event = do(_state(snapshot), dict(content))
        columns = self._columns(state, session)
        self._remember(state, columns, session)
        return {"event": event, "columns": columns}

    # One method per action: the conversation's new state, its session, the event to keep.

    def _do_answer(self, state: dict[str, Any], content: dict[str, Any]) -> Any:
        session, shown = self._session(state), state["view"]["question"]["plans"]
        question = session.ask()
        asked = [list(plan.moves) for plan in question.plans] if question else None
        if asked != [plan["moves"] for plan in shown]:
            raise ConversationError(
                "the question can no longer be worked out as it was shown; nothing was changed"
            )
        session.answer(content["choice"])
        return state, session, {**content, "plans": [_bare(plan) for plan in shown]}

    def _do_undo(self, state: dict[str, Any], content: dict[str, Any]) -> Any:
        answers = list((state["session"] or {}).get("answers", ()))
        kept = content.get("kept", len(answers) - 1)
        kept = max(0, min(int(kept), len(answers) - 1))
        state["session"] = {"answers": answers[:kept]}
        state["accepted"] = False
        return state, self._session(state), {"kept": kept}

    def _do_limit(self, state: dict[str, Any], content: dict[str, Any]) -> Any:
        return self._with_limits(state, add_limit(state["limits"], content), {"limit": content})

    def _do_lift(self, state: dict[str, Any], content: dict[str, Any]) -> Any:
        ids = content["id"].split(",")
        kept = [limit for limit in state["limits"] if limit["id"] not in ids]
        return self._with_limits(state, kept, content)

    def _with_limits(self, state: dict[str, Any], limits: list[Any], event: Any) -> Any:
        session = self._session(state)
        state["limits"] = limits
        wanted = as_limits(self.problem, session.start, limits)
        if wanted != session.limits:
            session.set_limits(wanted)
        return state, session, event

    def _do_accept(self, state: dict[str, Any], content: dict[str, Any]) -> Any:
        state["accepted"] = True
        return state, self._session(state), content

    def _do_resume(self, state: dict[str, Any], content: dict[str, Any]) -> Any:
        state["accepted"] = False
        return state, self._session(state), content

    def _do_done(self, state: dict[str, Any], content: dict[str, Any]) -> Any:
        steps = state["view"]["result"]["plan"]["steps"]
        state["record"] = _after(state["record"], steps[: content["steps"]])
        state["accepted"] = True
        session = self._session(state)
        if rest := steps[content["steps"] :]:
            works = self.decision(_after(state["record"], rest))["favourable"]
            same = _changes(rest) == _planned(self._recommend(session).plan)
            state["notices"] = ["rest_same" if same else "rest_easier" if works else "rest_new"]
        return state, session, content

    def _do_record(self, state: dict[str, Any], content: dict[str, Any]) -> Any:
        state["record"] = content["record"]
        state["accepted"] = state["accepted"] or state["stage"] == "plan"
        return state, self._session(state), {}

    def _do_recheck(self, state: dict[str, Any], content: dict[str, Any]) -> Any:
        """The model or the problem changed. Answers about steps that no longer exist are lost."""
        if state["problem_fingerprint"] != self.problem.fingerprint:
            state["session"], state["limits"] = None, _still_possible(self.problem, state)
        before = (state["view"] or {}).get("result")
        session = self._session(state)
        notice = "model_question"
        if before is not None:
            same = _changes(before["plan"]["steps"]) == _planned(self._recommend(session).plan)
            notice = "model_same" if same else "model_new"
        state["notices"] = [] if state["view"] is None else [notice]
        return state, session, {"model": self.black_box.fingerprint}

    # What follows from a conversation's state.

    def _columns(self, state: dict[str, Any], session: Session) -> dict[str, Any]:
        view = self._view(state, session)
        answers = [answer.to_dict() for answer in session.position.answers]
        return {
            "stage": view["stage"],
            "view": view,
            "session": {"answers": answers},
            "record": state["record"],
            "limits": state["limits"],
            "questions": len(answers),
            "outcome": _outcome(view, len(answers)),
            "problem_fingerprint": self.problem.fingerprint,
            "model_fingerprint": self.black_box.fingerprint,
        }

    def _view(self, state: Mapping[str, Any], session: Session) -> dict[str, Any]:
        decision = self.decision(state["record"])
        view: dict[str, Any] = {
            "accepted": state["accepted"],
            "score": decision["score"],
            "bar": self.problem.goal.bar(),
            "notices": list(state.get("notices", ())),
        }
        started = bool(session.n_answers) or state["accepted"]
        if decision["favourable"] and not started:
            return {**view, "stage": "favourable"}
        question = None if state["accepted"] else session.ask()
        if question is not None and not decision["favourable"]:
            plans = [
                {
                    **card(self.problem, plan),
                    "effort": effort,
                    "apart": apart,
                    "moves": list(plan.moves),
                }
                for plan, apart, effort in zip(
                    question.plans, differences(question.plans), question.efforts, strict=True
                )
            ]
            view |= {"stage": "question", "left": question.questions_left}
            return {**view, "question": {"number": question.number, "plans": plans}}
        found = self._recommend(session)
        if found.plan.success:
            if decision["favourable"]:
                view["notices"] = [*view["notices"], "reached"]
            elif _was_refused(session, found.plan):
                view["notices"] = [*view["notices"], "refused_before"]
            return {**view, "stage": "plan", "result": self._result(session, found)}
        return {**view, "stage": "no_plan", "no_plan": self._no_plan(state, session, found.plan)}

    def _recommend(self, session: Session) -> Result:
        """The best plan with its proof; the long search only where the short one proved nothing."""
        found = session.recommend()
        if found.plan.certificate.verdict in ("optimal", "infeasible"):
            return found
        plan = self.planner.plan(session.start, _draws(session), session.limits)
        if plan.moves == found.plan.moves:
            return replace(found, plan=plan)
        if not plan.success and found.plan.success:
            return found
        # How sure we are was worked out for the other plan: not known for this one.
        return replace(found, plan=plan, confidence=-1.0)

    def _result(self, session: Session, found: Any) -> dict[str, Any]:
        plan: Plan = found.plan
        shown, mean = card(self.problem, plan), session.posterior.mean()
        shorter = (
            self.asking.plans_by_length(session.start, _draws(session), session.limits)
            if len(plan.steps) > 1
            else []
        )
        return {
            "plan": with_reasons(self.problem, self.black_box, plan, shown, mean),
            "receipt": plan.to_dict(),
            "cost": plan.cost,
            "confidence": found.confidence if plan.steps and found.confidence >= 0 else None,
            "verdict": plan.certificate.verdict,
            "alternatives": alternatives(self.problem, plan, shorter),
            "made_at": time.time(),
            "more": found.questions_left > 0,
        }

    def _no_plan(self, state: Snapshot, session: Session, plan: Plan) -> dict[str, Any]:
        """Which limits, alone or else two together, stand in the way, and what each would open."""
        limits = list(state["limits"])
        alone = [(limit,) for limit in limits]
        pairs = [(a, b) for i, a in enumerate(limits) for b in limits[i + 1 :]][:40]
        for groups in (alone, pairs, [tuple(limits)] if len(limits) > 2 else []):
            found = self._loosenings(session, limits, groups)
            if found:
                break
        return {"verdict": plan.certificate.verdict, "loosenings": found}

    def _loosenings(self, session: Session, limits: list[Any], groups: Any) -> list[dict[str, Any]]:
        groups = list(groups)
        if not groups:
            return []
        rest = [
            as_limits(self.problem, session.start, [x for x in limits if x not in group])
            for group in groups
        ]
        mean = session.posterior.mean()
        starts = np.repeat(session.start[None], len(groups), axis=0)
        plans = self.asking.plan_many(starts, mean, rest)
        return [
            {"limits": [limit["id"] for limit in group], "plan": card(self.problem, plan)}
            for group, plan in zip(groups, plans, strict=True)
            if plan.success
        ]

    # Sessions

    def _session(self, snapshot: Snapshot) -> Session:
        """The session of a conversation: remembered, or rebuilt from its answers."""
        digest = _digest(snapshot)
        known = self._sessions.pop(snapshot["id"], None)
        if known is not None and known[0] == digest:
            return known[1]
        state = self.problem.state(snapshot["record"])
        session = Session(
            self.asking,
            snapshot["record"],
            self.prior,
            settings=self.settings,
            seed=snapshot["seed"],
            limits=as_limits(self.problem, state, snapshot["limits"]),
        )
        answers = list((snapshot["session"] or {}).get("answers", ()))
        if not answers:
            return session
        return Session.from_dict({**session.to_dict(), "events": answers}, self.asking, self.prior)

    def _remember(self, state: Snapshot, columns: Mapping[str, Any], session: Session) -> None:
        self._sessions[state["id"]] = (_digest({**state, **columns}), session)
        while len(self._sessions) > self._most:
            self._sessions.popitem(last=False)


def _state(snapshot: Snapshot) -> dict[str, Any]:
    """A conversation to change; ``accepted`` says that the person wants a plan, not questions."""
    return {**snapshot, "accepted": bool((snapshot["view"] or {}).get("accepted"))}


def _draws(session: Session) -> NDArray[np.float64]:
    """Posterior samples ``(n, p)`` that plans are made for, the same at each look."""
    rng = np.random.default_rng([session.seed, session.n_answers, 7])
    return session.posterior.draw(DRAWS, rng)


def _digest(snapshot: Snapshot) -> str:
    """What a session depends on, hashed; another's lost race never looks like one's own."""
    content = [snapshot["seed"], snapshot["record"], snapshot["limits"], snapshot["session"]]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _bare(plan: Mapping[str, Any]) -> dict[str, Any]:
    """A plan of an answered question, for looking back: its words only."""
    return {
        "steps": [{"words": step["words"]} for step in plan["steps"]],
        "apart": plan["apart"],
    }


def _after(record: Mapping[str, Any], steps: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A record once some steps are done."""
    return {**record, **dict(_changes(steps))}


def _changes(steps: Sequence[Mapping[str, Any]]) -> list[tuple[str, Any]]:
    return [(step["feature"], step["after"]) for step in steps]


def _planned(plan: Plan) -> list[tuple[str, Any]]:
    return [(step.feature, step.after) for step in plan.steps]


def _was_refused(session: Session, plan: Plan) -> bool:
    """Whether the person said "none of these" of a question that held this very plan."""
    return any(answer.refused and plan.moves in answer.plans for answer in session.position.answers)


def _outcome(view: Mapping[str, Any], questions: int) -> dict[str, Any]:
    """What the lender sees of how it went."""
    outcome: dict[str, Any] = {"score": view["score"], "questions": questions}
    if view["stage"] == "plan":
        steps = len(view["result"]["plan"]["steps"])
        outcome |= {"success": True, "steps": steps, "effort": view["result"]["cost"]}
    elif view["stage"] == "no_plan":
        outcome["success"] = False
    return outcome


def _still_possible(problem: Problem, state: Snapshot) -> list[Any]:
    kept = []
    for limit in state["limits"]:
        try:
            kept.append({"id": limit["id"], **check_limit(problem, limit)})
        except PearError:
            continue
    return kept
