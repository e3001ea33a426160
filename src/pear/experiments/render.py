"""How does a table look in Markdown and in LaTeX?"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from pear.experiments.summary import Figure95

DIGITS = {"validity": 2, "cost": 1, "length": 2}
ESCAPES = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "_": r"\_",
    "#": r"\#",
    "→": r"$\to$",
    "±": r"$\pm$",
    "−": "--",
    "∪": r"$\cup$",
    "…": r"\dots{}",
}


@dataclass(frozen=True)
class Table:
    """A table of texts; ``name`` is its file's, ``notes`` stand below it."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = field(default=())
    folded: bool = False

    def markdown(self, stamp: str = "", said: tuple[str, ...] = ()) -> str:
        """The table with its title and notes, but those ``said`` elsewhere.

        A folded one opens on a click.
        """
        lines = [
            "| " + " | ".join(self.columns) + " |",
            "|" + "|".join("---" if i == 0 else "--:" for i in range(len(self.columns))) + "|",
            *(
                "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"
                for row in self.rows
            ),
        ]
        body = "\n".join(lines)
        if self.folded:
            body = f"<details><summary>{len(self.rows)} rows</summary>\n\n{body}\n\n</details>"
        notes = "".join(f"\n\n{note}" for note in self.notes if note not in said)
        made = f"\n\n<sub>{stamp}</sub>" if stamp else ""
        return f"### {self.title}\n\n{body}{notes}{made}\n"

    def latex(self, stamp: str = "") -> str:
        """The table as LaTeX, for the package booktabs."""
        lines = [
            f"% {stamp}",
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{escaped(self.title)}. {escaped(' '.join((*self.notes, stamp)))}}}",
            rf"\begin{{tabular}}{{l{'r' * (len(self.columns) - 1)}}}",
            r"\toprule",
            " & ".join(escaped(column) for column in self.columns) + r" \\",
            r"\midrule",
            *(" & ".join(escaped(cell) for cell in row) + r" \\" for row in self.rows),
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
        ]
        return "\n".join(lines) + "\n"


def escaped(text: str) -> str:
    """A text as LaTeX.

    >>> escaped("5% of a_b")
    '5\\\\% of a\\\\_b'
    """
    return "".join(ESCAPES.get(sign, sign) for sign in text.replace("**", ""))


def with_spread(figure: Figure95, measure: str) -> str:
    """Mean ± spread over runs."""
    if np.isnan(figure.mean):
        return "-"
    digits = DIGITS.get(measure, 2)
    return f"{figure.mean:.{digits}f} ± {figure.spread:.{digits}f}"


def interval(figure: Figure95, measure: str) -> str:
    """The 95% interval; none of a single user."""
    if np.isnan(figure.mean) or figure.users < 2:
        return "-"
    digits = DIGITS.get(measure, 2)
    return f"{figure.low:.{digits}f} to {figure.high:.{digits}f}"


def published_text(cell: tuple[float, float] | None, measure: str) -> str:
    """A published cell."""
    if cell is None:
        return "-"
    digits = DIGITS.get(measure, 2)
    return f"{cell[0]:.{digits}f} ± {cell[1]:.{digits}f}"
