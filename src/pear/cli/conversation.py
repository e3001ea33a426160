"""The conversation in the terminal: questions, plans, the recommendation."""

from __future__ import annotations

import codecs
import io
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from rich import box
from rich.console import Console, Group
from rich.containers import Lines
from rich.table import Table
from rich.text import Text

from pear.cli.keys import read_key, single_keys

if TYPE_CHECKING:
    from pear.elicitation import Question, Result, Session, Standing
    from pear.elicitation.shown import Hard, Line, Told, ToldQuestion, ToldResult

LETTERS = "abcdefgh"
PLAIN = {
    "€": "EUR", "£": "GBP", "→": "->", "…": "...", "·": "-", "’": "'", "–": "-", "−": "-",
    "“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "✓": "*", "\N{NO-BREAK SPACE}": " ",
    "ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss",
}  # fmt: skip
WIDTH = 100
"""Lines of text are no longer than this."""

NARROWEST = 10
"""Columns of a plan are not narrower than this."""

SPACE, GLUE = "\N{NO-BREAK SPACE}", "\ue000"
"""A space at which no line ends, and what stands for it while lines are broken."""


class Whole(Text):
    """A text whose lines end at no no-break space: "€ 1,500" and "3 months" stay whole."""

    def wrap(self, console: Console, width: int, **settings: Any) -> Lines:
        """The text in lines of at most ``width`` cells."""
        glued = self.copy()
        glued.plain = glued.plain.replace(SPACE, GLUE)
        lines = glued.wrap(console, width, **settings)
        for line in lines:
            line.plain = line.plain.replace(GLUE, SPACE)
        return lines


def make_console() -> Console:
    """A console that writes what its terminal can show, and something plain for the rest."""
    codecs.register_error("pear.plain", _in_plain_letters)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and not stream.encoding.lower().startswith("utf"):
            stream.reconfigure(errors="pear.plain")
    return Console(highlight=False)


def _in_plain_letters(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    letters = error.object[error.start : error.end]
    return "".join(PLAIN.get(letter, "?") for letter in letters), error.end


def hold(
    console: Console,
    session: Session,
    save: Callable[[], None] | None = None,
    language: str = "en",
) -> Result | None:
    """Ask until nothing is worth asking or the person is content; None when they quit.

    ``save`` is called after every answer, so that quitting or Ctrl-C loses nothing.
    """
    with single_keys():
        return Conversation(console, session, language).held(save or (lambda: None))


def print_whole(console: Console, text: Whole) -> None:
    """Print a text as it is: by itself, a console would make a plain text of it first."""
    console.print(Group(text), width=WIDTH)


class Conversation:
    """One conversation at a console, in the words of one language."""

    def __init__(self, console: Console, session: Session, language: str = "en") -> None:
        from pear.elicitation.words import Words, catalogue

        self.console, self.session = console, session
        self.words = Words(session.planner.problem, catalogue(language))
        self.texts = self.words.texts

    def held(self, keep: Callable[[], None]) -> Result | None:
        """Ask until the end; what was said is kept after every answer."""
        from pear.elicitation.shown import Hard

        content = False
        while True:
            standing = self._standing(content)
            if standing.question is not None:
                key = self._asked(standing)
                if key == "q":
                    keep()
                    return None
                content = key == "f"
                keep()
                continue
            assert standing.result is not None
            told = self.show_result(standing)
            key = self._judged(standing.result, content)
            if key not in "ux":
                keep()
                return self.with_reasons(standing.result)
            if key == "x" and told is not None:
                steps = tuple(Hard(step.words, step.refusals) for step in told.plan.steps)
                self._too_hard(steps, refused=False)
            elif key == "u" and not content:
                self.session.undo()
            keep()
            content = False

    def _standing(self, content: bool) -> Standing:
        """Where the conversation stands: at a result, too, for someone content with the best."""
        with self.console.status(self.texts("ask.looking")):
            standing = self.session.standing()
            if standing.question is None and standing.result is not None:
                return standing
            if not content and standing.question is not None:
                return standing
            found = self.session.result()
        stage: Literal["plan", "no_plan"] = "plan" if found.plan.success else "no_plan"
        return replace(standing, stage=stage, question=None, result=found)

    def with_reasons(self, result: Result) -> Result:
        """The result, every step of its plan with its reason in words."""
        plan = result.plan
        steps = tuple(
            replace(step, reason=self.words.reason(step, reason))
            for step, reason in zip(plan.steps, result.reasons, strict=False)
        )
        return replace(result, plan=replace(plan, steps=steps or plan.steps))

    # A question

    def _asked(self, standing: Standing) -> str:
        """Ask one question and take in the answer; the key pressed."""
        assert standing.question is not None
        told = self.show_question(standing)
        letters = LETTERS[: len(told.letters)]
        choices = {
            "/".join(letters): "rather", "s": "same", "n": "none", "x": "cannot", "w": "why",
            "u": "undo", "f": "best", "q": "quit",
        }  # fmt: skip
        while (key := self._key(choices)) == "w":
            self.show_reasons(standing.question)
        if key in letters:
            self.session.answer(letters.index(key))
        elif key == "s":
            self.session.answer("same")
        elif key in "nx":
            self._too_hard(told.too_hard, refused=key == "n")
        elif key == "u" and self.session.events:
            self.session.undo()
        elif key == "u":
            self._say("ask.nothing")
        return key

    def show_question(self, standing: Standing) -> ToldQuestion:
        """The plans of the open question side by side: rows are things to do."""
        question = self._told(standing).question
        assert question is not None
        texts = self.texts
        self.console.rule(
            f"[b]{texts('ask.question', number=question.number)}[/b]  {question.progress}",
            align="left",
        )
        table = Table(title=texts("ask.title"), title_justify="left", title_style="bold")
        table.box = box.SIMPLE_HEAD
        lines = (*question.facts, *question.lines)
        # A word of a label is never cut where the plans can be narrower.
        longest = max(len(word) for line in lines for word in line.label.split(" "))
        room = (self.console.width - longest - 4) // len(question.letters) - 3
        table.add_column("", max_width=44, overflow="fold")
        for letter in question.letters:
            width = min(32, max(NARROWEST, room))
            table.add_column(texts("compare.plan", letter=letter), max_width=width, overflow="fold")
        for line in question.facts:
            self._add_line(table, line, "dim")
        table.add_section()
        for line in question.lines:
            self._add_line(table, line, "bold")
        self.console.print(table)
        if question.shared:
            both = texts("compare.both" if len(question.letters) == 2 else "compare.all")
            same = [
                line.label if line.cells[0].changes else f"{line.label}: {line.cells[0].value}"
                for line in question.shared
            ]
            self._hanging([(f"{both}:", "; ".join(same), "")], style="dim")
        return question

    def _add_line(self, table: Table, line: Line, style: str) -> None:
        label = Whole(line.label)
        if line.now:
            label.append(f" ({line.now})", "dim")
        cells = [
            Whole(cell.value, style if cell.changes or style == "dim" else "dim")
            for cell in line.cells
        ]
        table.add_row(label, *cells)

    def _too_hard(self, things: Sequence[Hard], *, refused: bool) -> None:
        """Ask which step is too hard and in which way; "none of these" where none is."""
        last = "ask.not_one" if refused else "ask.back"
        place = self._pick("ask.which", [thing.words for thing in things], last)
        if place is None:
            if refused:
                self.session.answer("none")
            return
        refusals = things[place].refusals
        grade = (
            self._pick("ask.how", [refusal.words for refusal in refusals], "ask.back")
            if len(refusals) > 1
            else 0
        )
        if grade is None:
            return
        from pear.elicitation.says import Excluded

        limit = refusals[grade].limit
        self.session.say(Excluded((limit,)))
        self._say("ask.noted", limit=self.words.limit(limit))

    def _pick(self, question: str, options: list[str], last: str) -> int | None:
        """One of some options by its number; None for the last one, 0."""
        self._say(question)
        shown = options[:9]
        numbered = [(str(number), words, "") for number, words in enumerate(shown, 1)]
        self._hanging([*numbered, ("0", self.texts(last), "")])
        number = int(self._read("0123456789"[: len(shown) + 1]))
        return number - 1 if number else None

    def show_reasons(self, question: Question) -> None:
        """What each step of the plans asked about is for: one more call of the model."""
        from pear.planning.reasons import explain_plans

        planner = self.session.planner
        explained = explain_plans(planner.problem, planner.black_box, question.plans)
        for letter, found in zip(LETTERS, explained, strict=False):
            self.console.print()
            self._say("ask.reasons", letter=letter.upper())
            self._hanging(
                (f"{i}", f"{self.words.step(step)}\n{self.words.reason(step, reason)}", "")
                for i, (step, reason) in enumerate(
                    zip(found.plan.steps, found.reasons, strict=True), 1
                )
            )
        self.console.print()

    # The result

    def show_result(self, standing: Standing) -> ToldResult | None:
        """The plan, the score along it, how sure we are, and what was checked."""
        texts, told = self.texts, self._told(standing)
        result = told.result
        self.console.rule(f"[b]{texts('plan.title')}[/b]", align="left")
        if result is None:
            assert standing.result is not None
            self._say("plan.none")
            self._print(Whole(self.words.certificate(standing.result.plan.certificate.verdict)))
            for suggestion in told.suggestions:
                self._hanging([("·", suggestion.words, "")])
            return None
        plan = result.plan
        if not plan.steps:
            self._say("plan.reached")
            return result
        self._print(Whole(texts.count("plan.lead", len(plan.steps))))
        score = texts("plan.score_way", before=told.points, after=plan.points, bar=told.required)
        glance = {"time": plan.time, "money": plan.money, "loan": plan.loan, "score": score}
        self._hanging((texts(f"plan.{name}"), words, "") for name, words in glance.items() if words)
        if plan.thin:
            self._say("plan.thin")
        self.console.print()
        rows = [("", texts("ask.today"), texts("ask.points", points=told.points))]
        for number, step in enumerate(plan.steps, 1):
            words = f"{step.words} ({step.takes})" if step.takes else step.words
            reason = f"{words}\n{step.reason}" if step.reason else words
            rows.append((str(number), reason, texts("ask.points", points=step.after)))
        self._hanging(rows)
        self.console.print()
        sure = Whole()
        sure.append(texts("certainty.works"), "bold").append(f" {result.certainty}")
        self._print(sure)
        self._print(Whole(result.proof, "dim"))
        return result

    def _judged(self, result: Result, content: bool) -> str:
        """What follows the result: content with it, back a step, or an end; the key pressed."""
        choices = {"u": "undo"} if content or self.session.events else {}
        if result.plan.success and result.plan.steps and not self.session.finished:
            choices |= {"y": "fine", "x": "cannot"}
        if not choices:
            return "q"
        try:
            key = self._key({**choices, "q": "quit"})
        except EOFError:
            return "q"
        if key == "y":
            self.session.accept()
        return key

    # Words on the screen

    def _told(self, standing: Standing) -> Told:
        from pear.elicitation.shown import tell

        return tell(standing, self.words)

    def _say(self, name: str, **values: str) -> None:
        self._print(Whole(self.texts(name, **values)))

    def _print(self, text: Whole) -> None:
        print_whole(self.console, text)

    def _hanging(self, rows: Iterable[tuple[str, str, str]], style: str = "") -> None:
        """Rows of a label, words that wrap beside it, and points at the end of the line."""
        found = list(rows)
        grid = Table.grid(padding=(0, 2), expand=False)
        grid.add_column(style=style or "bold", no_wrap=True)
        grid.add_column(style=style, max_width=WIDTH - 24)
        grid.add_column(justify="right", style="bold", no_wrap=True)
        for label, words, points in found:
            first, *more = words.split("\n")
            grid.add_row(label, Whole(first), points)
            for line in more:
                grid.add_row("", Whole(line, "dim"), "")
        self.console.print(grid)

    def _key(self, choices: dict[str, str]) -> str:
        """The key pressed for one of some texts of ``ask``, which are shown."""
        shown = Whole()
        for keys, name in choices.items():
            shown.append(" · " if shown else "").append(keys, "bold")
            shown.append(f" {self.texts(f'ask.{name}')}".replace(" ", SPACE))
        self.console.print()
        self._print(shown)
        return self._read("".join(choices).replace("/", ""))

    def _read(self, keys: str) -> str:
        return read_key(keys, lambda key: self._say("ask.unknown", key=key, keys=", ".join(keys)))
