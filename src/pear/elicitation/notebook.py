"""How do questions and conversations look as tables, in notebooks and as pictures?

Nothing here searches: a conversation is shown as far as it has been held.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from pear.arrays import Floats
from pear.elicitation.says import Accepted, Answered, Done, Excluded, LimitsSet, Said
from pear.elicitation.words import LETTERS, Words
from pear.preferences import Chosen
from pear.problem import Problem, walk
from pear.problem.limits import single_limits
from pear.problem.notebook import html_table, plot_ranges

if TYPE_CHECKING:
    from pear.elicitation.session import Session
    from pear.elicitation.shown import Question

DRAWN = 2_000
"""Samples behind a picture of what is believed."""


def question_frame(question: Question) -> pd.DataFrame:
    """The steps of all the plans of a question, a row each, by plan and step."""
    frames = {
        LETTERS[place]: plan.to_frame()[["words", "feature", "before", "after", "score_after"]]
        for place, plan in enumerate(question.plans)
    }
    return pd.concat(frames, names=["plan", "step"])


def question_html(question: Question) -> str:
    """A question as a table, with how much is left to ask."""
    left = question.questions_left
    title = f"Question {question.number}: which would you rather do?"
    return html_table(title, question_frame(question), f"About {left} of these are worth asking.")


def said_frame(session: Session) -> pd.DataFrame:
    """Everything said that still stands, a row each: what kind, in words, and the plans offered."""
    problem, rows = session.planner.problem, []
    for said in session.events:
        row = {"said": said.kind, "words": said_words(said, problem)}
        if isinstance(said, Answered):
            state = np.array(said.state, float)
            offered = [moves_words(problem, state, moves) for moves in said.plans]
            row.update(zip(LETTERS, offered, strict=False))
        rows.append(row)
    most = max((len(s.plans) for s in session.events if isinstance(s, Answered)), default=0)
    frame = pd.DataFrame(rows, columns=["said", "words", *LETTERS[:most]])
    frame.index = pd.RangeIndex(1, len(rows) + 1)
    return frame


def said_words(said: Said, problem: Problem) -> str:
    """One thing said, in words."""
    words = Words(problem)
    if isinstance(said, Answered):
        if isinstance(said.answer, Chosen):
            return f"plan {LETTERS[said.answer.plan]}"
        return "none of these" if said.refused else "about the same"
    if isinstance(said, LimitsSet):
        return "; ".join(words.limit(limit) for limit in single_limits(said.limits))
    if isinstance(said, Excluded):
        return "; ".join(words.limit(limit) for limit in said.limits)
    if isinstance(said, Done):
        return "; ".join(step.words for step in said.steps)
    return "this one is fine" if isinstance(said, Accepted) else ""


def moves_words(problem: Problem, state: Floats, moves: Sequence[int]) -> str:
    """The steps of a plan from a state ``(d,)``, by its moves, in words."""
    states, actions = walk(state, problem.actions, moves), problem.actions
    columns = [actions.feature_of[move] for move in moves]
    return "; ".join(
        actions.phrase(move, states[i, column], states[i + 1, column])
        for i, (move, column) in enumerate(zip(moves, columns, strict=True))
    )


def plot_session(session: Session, axes: Any = None) -> Any:
    """What each change is believed to cost this person, before and after their answers."""
    problem = session.planner.problem
    shown = list(problem.actions.actionable)
    before = session.prior.sample(DRAWN, np.random.default_rng(0))[0][:, shown]
    after = session.posterior.draw(DRAWN, np.random.default_rng(0))[:, shown]
    answers = "1 answer" if session.n_answers == 1 else f"{session.n_answers} answers"
    names = [problem.space.features[column].words for column in shown]
    axes = plot_ranges(names, [("before", before), (f"after {answers}", after)], axes)
    axes.set_xlabel("weight of a change by itself: mean and middle 80%")
    return axes
