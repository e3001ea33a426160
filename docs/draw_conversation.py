"""Which conversation does the README's picture show? The one of its example, drawn by this file.

Run it after a change that alters the example's plans: ``python docs/draw_conversation.py``.
"""

from __future__ import annotations

import textwrap
from html import escape
from pathlib import Path

from pear import ExactPlanner, Plan, Session
from pear.datasets import loan_book_classifier, loan_book_people, loan_book_problem

PICTURE = Path(__file__).parent / "images" / "conversation.svg"
WIDTH, CARD, GAP, LINE, LETTERS = 900, 270, 20, 20, 31
GREEN, INK, GREY = "#0b6e4f", "#1d2733", "#5b6b7a"


def step_lines(plan: Plan) -> list[str]:
    """The steps of a plan, numbered, in lines that fit a card."""
    lines: list[str] = []
    for number, step in enumerate(plan.steps, 1):
        lines += textwrap.wrap(f"{number}. {step.words}", LETTERS, subsequent_indent="    ")
    return lines


def sentence(plan: Plan) -> str:
    """The steps of a plan in one sentence, for those who cannot see the picture."""
    return "; ".join(step.words for step in plan.steps) + "."


def card(left: int, height: int, title: str, lines: list[str], foot: list[str], *, on: bool) -> str:
    """A card with a title, the lines of a plan and what is said below, in green."""
    border = f'stroke="{GREEN}" stroke-width="2.5"' if on else f'stroke="{GREY}"'
    parts = [f'<rect x="{left}" y="44" width="{CARD}" height="{height}" rx="10" {border}/>']
    texts = [(title, INK, "600"), *((line, INK, "400") for line in lines)]
    below = [(line, GREEN, "600") for line in foot]
    for row, (text, colour, weight) in enumerate(texts):
        parts.append(_text(left + 16, 72 + row * LINE, text, colour, weight))
    start = 44 + height - len(below) * LINE
    for row, (text, colour, weight) in enumerate(below):
        parts.append(_text(left + 16, start + row * LINE, text, colour, weight))
    return "\n".join(parts)


def _text(x: int, y: int, text: str, colour: str, weight: str) -> str:
    content = escape(text).replace("  ", "\u00a0\u00a0")
    return f'<text x="{x}" y="{y}" fill="{colour}" font-weight="{weight}">{content}</text>'


def picture() -> str:
    """A question of the README's example, the first whose plans differ in length, and its end."""
    problem = loan_book_problem()
    planner = ExactPlanner(problem, loan_book_classifier(problem))
    session = Session(planner, loan_book_people()["Amina"], seed=1)
    asked, chosen = [], []
    while (question := session.ask()) is not None:
        lengths = [plan.length for plan in question.plans]
        asked.append(question.plans)
        chosen.append(lengths.index(min(lengths)))
        session.answer(chosen[-1])
    answer = session.recommend()
    first = answer.plan.steps[0].score_before
    proof = ["no cheaper one by what she", "said, of the steps considered"]
    if answer.plan.certificate.verdict != "optimal":
        raise SystemExit("the example's plan is not proven optimal; draw another example")
    result = [f"score {first:.2f} → {answer.plan.score:.2f}: approved", *proof]
    differ = [len({plan.length for plan in shown}) > 1 for shown in asked]
    question_number = differ.index(True) if any(differ) else 0
    shown, choice = asked[question_number], chosen[question_number]
    plans = [step_lines(plan) for plan in shown]
    final = step_lines(answer.plan)
    height = 60 + LINE * max(*(len(lines) + 1 for lines in plans), len(final) + len(result))
    cards = [
        card(
            20 + place * (CARD + GAP), height, f"Plan {'ABCD'[place]}", lines,
            ["✓ I'd rather do this"] if place == choice else [], on=place == choice,
        )
        for place, lines in enumerate(plans)
    ]  # fmt: skip
    right = WIDTH - CARD - 20
    cards.append(card(right, height, f"After {len(asked)} questions", final, result, on=True))
    said = "From the example below: Amina of the synthetic loan book, who prefers few steps."
    told = [f"Plan {'AB'[i]}: {sentence(plan)}" for i, plan in enumerate(shown)]
    told.append(f"In the end: {sentence(answer.plan)}")
    size = f'viewBox="0 0 {WIDTH} {height + 84}"'
    style = 'font-family="system-ui, sans-serif" font-size="14"'
    head = f'{size} role="img" aria-labelledby="title description" {style}'
    asks = f"Question {question_number + 1}: which would you rather do?"
    return f"""<svg xmlns="http://www.w3.org/2000/svg" {head}>
<title id="title">A question and the plan that follows from the answers</title>
<desc id="description">{escape(" ".join(told))}</desc>
<rect width="{WIDTH}" height="{height + 84}" fill="#ffffff"/>
<g fill="none">
{chr(10).join(cards)}
</g>
{_text(20, 28, asks, INK, "600")}
{_text(right, 28, "Your plan", INK, "600")}
{_text(20, height + 70, said, GREY, "400")}
</svg>
"""


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
    print(f"drew {PICTURE}")
