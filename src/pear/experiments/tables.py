"""How does a table of methods look beside the paper's? Shared by all result tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pear.experiments.published import MEASURES, STOP, published_cell
from pear.experiments.registry import dataset_label, find_method
from pear.experiments.render import DIGITS, Table, interval, published_text, with_spread
from pear.experiments.summary import Common, Figure95, final, solved_by_all, summed_up

COLUMNS = (
    "Validity",
    "Validity (paper)",
    "Cost",
    "95% over users",
    "Cost (paper)",
    "Cost, users all solve",
    "Length",
    "Length (paper)",
)
NOTE = (
    "Costs and lengths in the tables of methods count 1 for STOP, as the paper's do. ± is the "
    "spread of a user over runs, averaged over users, in the paper's columns too; the interval is "
    "a bootstrap over users."
)


@dataclass(frozen=True)
class Line:
    """One row of a result table: a label, its rows, and the paper's name for it.

    ``method`` is the method's label where the line's says more.
    """

    label: str
    rows: pd.DataFrame
    published: str
    why: str = ""
    corruption: float | None = None
    method: str = ""


@dataclass(frozen=True)
class Difference:
    """A cell that lies further from the paper's than the paper's own spread.

    ``line`` is the row of the table, ``method`` the method it is about, ``why`` what is known;
    ``within``: the paper's mean lies in our 95% interval over users.
    """

    where: str
    line: str
    method: str
    measure: str
    ours: float
    paper: float
    spread: float
    within: bool
    why: str

    def text(self) -> str:
        """Ours, the paper's, and whether the sample of users may be all of it."""
        digits = DIGITS[self.measure]
        inside = " (within our interval)" if self.within else ""
        return (
            f"{self.ours:.{digits}f} / {self.paper:.{digits}f} ± {self.spread:.{digits}f}{inside}"
        )


Lines = Callable[[pd.DataFrame], Sequence[Line]]


def method_lines(rows: pd.DataFrame) -> list[Line]:
    """One line per method, in the order they come."""
    lines = []
    for name in dict.fromkeys(rows["method"].tolist()):
        method: Any = find_method(name)
        lines.append(
            Line(
                getattr(method, "label", name),
                rows[rows["method"] == name],
                getattr(method, "published", ""),
                getattr(method, "why", ""),
            )
        )
    return lines


def result_tables(
    name: str,
    title: str,
    published_table: str,
    rows: pd.DataFrame,
    first_column: str = "Method",
    lines_of: Lines = method_lines,
) -> tuple[list[Table], list[Difference]]:
    """A table for each data set and user set, and the cells that differ from the paper's."""
    tables: list[Table] = []
    differences: list[Difference] = []
    for key, part in final(rows).groupby(["dataset", "classifier", "users"], sort=False):
        dataset, classifier, users = (str(value) for value in key)
        lines = lines_of(part)
        common = solved_by_all({line.label: line.rows for line in lines})
        texts = []
        where = f"{dataset_label(dataset)}, {users.title()}"
        if classifier != "network":
            where += f", {CLASSIFIER_WORDS.get(classifier, classifier)}"
        for line in lines:
            figures = {
                measure: summed_up(line.rows, measure, 0.0 if measure == "validity" else STOP)
                for measure in MEASURES
            }
            among = common.users if line.label not in common.left_out else frozenset[int]()
            shared = line.rows[line.rows["user"].isin(among)]
            cells = {
                measure: published_cell(
                    published_table,
                    classifier,
                    dataset,
                    users,
                    line.published,
                    measure,
                    line.corruption,
                )
                for measure in MEASURES
            }
            texts.append(_texts(line.label, figures, cells, summed_up(shared, "cost", STOP)))
            differences += _differences(where, line, figures, cells)
        tables.append(
            Table(
                f"{name}-{dataset.replace(':', '.')}-{classifier}-{users}",
                f"{title}: {where}",
                (first_column, *COLUMNS),
                tuple(texts),
                (NOTE, _common_words(part, common, first_column)),
            )
        )
    return tables, differences


CLASSIFIER_WORDS = {"logistic": "logistic regression", "tree": "decision tree"}


def _texts(
    label: str,
    figures: dict[str, Figure95],
    cells: dict[str, tuple[float, float] | None],
    shared: Figure95,
) -> tuple[str, ...]:
    return (
        label,
        with_spread(figures["validity"], "validity"),
        published_text(cells["validity"], "validity"),
        with_spread(figures["cost"], "cost"),
        interval(figures["cost"], "cost"),
        published_text(cells["cost"], "cost"),
        "-" if np.isnan(shared.mean) else f"{shared.mean:.1f}",
        with_spread(figures["length"], "length"),
        published_text(cells["length"], "length"),
    )


def _differences(
    where: str,
    line: Line,
    figures: dict[str, Figure95],
    cells: dict[str, tuple[float, float] | None],
) -> list[Difference]:
    found = []
    for measure, cell in cells.items():
        ours = figures[measure]
        if cell is not None and not np.isnan(ours.mean) and abs(ours.mean - cell[0]) > cell[1]:
            within = ours.low <= cell[0] <= ours.high
            method = line.method or line.label
            found.append(
                Difference(where, line.label, method, measure, ours.mean, *cell, within, line.why)
            )
    return found


def _are(count: int) -> str:
    """A number with its verb.

    >>> _are(1), _are(12)
    ('1 is', '12 are')
    """
    return f"{count} is" if count == 1 else f"{count} are"


def _common_words(rows: pd.DataFrame, common: Common, first_column: str) -> str:
    each = "method" if first_column == "Method" else "line"
    solved = _are(len(common.strictly))
    words = f"Of {rows['user'].nunique()} users, {solved} solved by every {each} here in some run"
    if common.left_out:
        words += (
            f"; {len(common.users)} by every {each} that solves at least a fifth of them "
            f"(without {'; '.join(common.left_out)}), and the shared costs are over these"
        )
    return words + "."


def difference_table(differences: Sequence[Difference]) -> Table | None:
    """Where ours and the paper's differ by more than the paper's spread, and what is known."""
    if not differences:
        return None
    lines: dict[tuple[str, str], dict[str, str]] = {}
    causes: dict[str, list[str]] = {}
    for difference in differences:
        cells = lines.setdefault((difference.where, difference.line), {})
        cells[difference.measure] = difference.text()
        known = causes.setdefault(difference.why or "Nothing was tested.", [])
        if difference.method not in known:
            known.append(difference.method)
    rows = [(*key, *(cells.get(m, "·") for m in MEASURES)) for key, cells in lines.items()]
    listed = "\n".join(f"- **{', '.join(names)}.** {why}" for why, names in causes.items())
    return Table(
        "differences",
        "Where ours and the paper's differ by more than the paper's spread",
        ("Where", "Method", *(f"{measure.title()} (ours / paper)" for measure in MEASURES)),
        tuple(rows),
        (
            "A dot: no such difference. A spread of 0 (a method that repeats itself) makes every "
            "difference count. *Within our interval*: the paper's mean lies in our 95% interval "
            "over users, so which users were drawn may be all of it. Unless the profile is full, "
            "users are fewer than the paper's. Of classifiers and users, those of Adult's network, "
            "set All, are the published ones; all others are ours, and what follows from that was "
            "not tested (our GiveMeSomeCredit network is flat over many of its refused, see "
            "Sources: its set Hard need not be as hard as the paper's).",
            "What we know of it. A cause is named only where a trial showed it. Trials were on "
            "the first 20 users of each set, in one run (PEAR, FARE, RL) or two, with the "
            "methods named in code style (`pear bench competitors --profile reduced --users 20 "
            "--methods NAME`); their figures stand in the order Adult All, Adult Hard, "
            "GiveMeSomeCredit All, GiveMeSomeCredit Hard, for the network unless said. Ours "
            "beside them are of the same 20 users, so they may differ from the tables above. "
            "What the published program does was read in its source.",
            listed,
        ),
    )
