"""The conversation in the terminal: questions, plans, the recommendation."""

from __future__ import annotations

import codecs
import io
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rich.columns import Columns
from rich.console import Console, Group
from rich.markup import escape
from rich.panel import Panel
from rich.text import Text

from pear.cli.keys import read_key, single_keys

if TYPE_CHECKING:
    from pear.elicitation import Question, Result, Session
    from pear.problem import Plan

LETTERS = "abcdefgh"
PLAIN = {"€": "EUR", "£": "GBP", "→": "->", "…": "...", "·": "-", "’": "'", "–": "-", "−": "-"}
HELP = (
    "[b]{plans}[/b] I'd rather do this · [b]s[/b] about the same · [b]n[/b] none of these · "
    "[b]x[/b] I can't do a step · [b]w[/b] why these steps? · [b]u[/b] undo · "
    "[b]f[/b] use the best plan so far · [b]q[/b] quit"
)


def make_console() -> Console:
    """A console that writes what its terminal can show, and something plain for the rest."""
    codecs.register_error("pear.plain", _in_plain_letters)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and not stream.encoding.lower().startswith("utf"):
            stream.reconfigure(errors="pear.plain")
    return Console()


def _in_plain_letters(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    letters = error.object[error.start : error.end]
    return "".join(PLAIN.get(letter, "?") for letter in letters), error.end


def hold(
    console: Console, session: Session, save: Callable[[], None] | None = None
) -> Result | None:
    """Ask until nothing is worth asking or the person is content; None when they quit.

    ``save`` is called after every answer, so that quitting or Ctrl-C loses nothing.
    """
    with single_keys():
        return _hold(console, session, save or (lambda: None))


def _hold(console: Console, session: Session, keep: Callable[[], None]) -> Result | None:
    content = False
    while True:
        question = None if content else session.ask()
        if question is None:
            result = with_reasons(session, session.result())
            show_result(console, result)
            key = _after_result(console, session, result, undo=content or bool(session.events))
            if key == "x":
                exclude_step(console, session, [result.plan])
                content = False
                keep()
                continue
            if key != "u":
                keep()
                return result
            # Going back from "the best plan so far" leads to the question it was said to.
            if content:
                content = False
            else:
                session.undo()
                keep()
            continue
        show_question(console, session, question)
        show_standing(console, session)
        letters = LETTERS[: len(question.plans)]
        console.print(HELP.format(plans="/".join(letters)))
        key = read_key(letters + "snxwufq")
        if key == "q":
            keep()
            return None
        if key == "f":
            content = True
            continue
        _act(console, session, question, key)
        keep()


def _after_result(console: Console, session: Session, result: Result, undo: bool) -> str:
    """What follows the result: content with it, back a step, or an end; the key pressed."""
    choices = {"u": "undo"} if undo else {}
    if result.plan.success and not session.finished:
        choices |= {"y": "this one is fine", "x": "I can't do a step"}
    if not choices:
        return "q"
    choices["q"] = "quit"
    console.print(" · ".join(f"[b]{key}[/b] {words}" for key, words in choices.items()))
    try:
        key = read_key("".join(choices))
    except EOFError:
        return "q"
    if key == "y":
        session.accept()
    return key


def with_reasons(session: Session, result: Result) -> Result:
    """The result, every step of its plan with its reason in words."""
    from pear.elicitation import Words

    words, plan = Words(session.planner.problem), result.plan
    steps = tuple(
        replace(step, reason=words.reason(step, reason))
        for step, reason in zip(plan.steps, result.reasons, strict=False)
    )
    return replace(result, plan=replace(plan, steps=steps or plan.steps))


def _act(console: Console, session: Session, question: Question, key: str) -> None:
    if key == "u":
        if session.events:
            session.undo()
        else:
            console.print("There is nothing to take back yet.")
    elif key == "x":
        exclude_step(console, session, question.plans)
    elif key == "w":
        show_reasons(console, session, question)
    else:
        session.answer({"s": "same", "n": "none"}.get(key) or LETTERS.index(key))  # type: ignore[arg-type]


def exclude_step(console: Console, session: Session, plans: Sequence[Plan]) -> None:
    """Ask which step of these plans is out of the question, and make it a limit."""
    steps: dict[str, list[str]] = {}
    for step in (step for plan in plans for step in plan.steps):
        words = steps.setdefault(step.feature, [])
        if step.words not in words:
            words.append(step.words)
    features = list(steps)[:9]
    for number, feature in enumerate(features, 1):
        console.print(f"  [b]{number}[/b] {escape(' / '.join(steps[feature]))}")
    console.print("Which can't you do at all? [b]0[/b] none of them")
    number = int(read_key("0123456789"[: len(features) + 1]))
    if number:
        session.exclude(feature=features[number - 1])
        words_of = session.planner.problem.space[features[number - 1]].words
        console.print(f"Understood: nothing that changes your {escape(words_of)}.")


def show_question(console: Console, session: Session, question: Question) -> None:
    """The plans side by side, and what differs between them in words."""
    from pear.elicitation import Words

    words = Words(session.planner.problem)
    console.rule(f"Question {question.number}: which would you rather do?")
    cards = [
        Panel(
            Group(*plan_lines(plan), Text(""), Text(words.difference(difference), style="italic")),
            title=f"Plan {LETTERS[i].upper()}",
            width=min(56, max(30, console.width // len(question.plans) - 2)),
        )
        for i, (plan, difference) in enumerate(
            zip(question.plans, question.differences, strict=True)
        )
    ]
    console.print(Columns(cards))


def show_reasons(console: Console, session: Session, question: Question) -> None:
    """What each step of the plans asked about is for: one more call of the model."""
    from pear.elicitation import Words
    from pear.planning.reasons import explain_plans

    planner = session.planner
    words = Words(planner.problem)
    explained = explain_plans(planner.problem, planner.black_box, question.plans)
    for letter, found in zip(LETTERS, explained, strict=False):
        lines = [
            Text(f"{i}. {step.words}: {words.reason(step, reason)}")
            for i, (step, reason) in enumerate(zip(found.plan.steps, found.reasons, strict=True), 1)
        ]
        console.print(Panel(Group(*lines), title=f"Why the steps of plan {letter.upper()}"))


def show_standing(console: Console, session: Session) -> None:
    """How sure we are by now, and how many questions are likely left."""
    found = session.so_far()
    if found is not None:
        left = found.questions_left
        console.print(
            f"[dim]By now the best plan is right with probability {found.confidence:.0%}; "
            f"likely {left} more question{'s' if left != 1 else ''} at most.[/dim]"
        )


def plan_lines(plan: Plan) -> list[Text]:
    """The steps of a plan, numbered."""
    return [Text(f"{i}. {step.words}") for i, step in enumerate(plan.steps, 1)]


def show_result(console: Console, result: Result) -> None:
    """The plan, the score along it, how sure we are, and what is proven."""
    plan = result.plan
    if not plan.success:
        console.print(Panel(Text(plan.certificate.words()), title="No plan"))
        return
    lines: list[Text] = []
    for number, step in enumerate(plan.steps, 1):
        lines.append(Text(f"{number}. {step.words}"))
        lines.append(
            Text(
                f"   score {step.score_before:.2f} → {step.score_after:.2f}, "
                f"expected effort {step.cost:.1f}",
                style="dim",
            )
        )
        if step.reason:
            lines.append(Text(f"   {step.reason}"))
    lines += [
        Text(""),
        Text(f"Expected effort in all: {plan.cost:.1f}"),
        Text(
            f"Within 5% of your best plan with probability {result.confidence:.0%}, "
            "by what you told us."
        ),
        Text(plan.certificate.words()),
        Text(
            f"The cheapest {'' if plan.certificate.verdict == 'optimal' else 'found '}by what you "
            "told us, among the steps considered, for this version of the model.",
            style="italic",
        ),
    ]
    console.print(Panel(Group(*lines), title="Your plan"))
