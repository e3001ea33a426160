"""Which method gives whom a plan, and at what cost? The paper's four tables of methods.

One shape for all: our figures by the paper's definitions beside those of the published system for
the same users, then user by user what the definitions leave out: the cost on the users both solve,
with its interval, and the distance from the certified optimum.

References: paper, tables eval-results, eval-results-shallow, error-causal and xpear-results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pear.experiments.drawing import DIGITS, Picture, Table, with_spread
from pear.experiments.experiment import (
    Experiment,
    Material,
    Report,
    Task,
    dataset_label,
    find_method,
)
from pear.experiments.problems import automaton_picture
from pear.experiments.profiles import (
    COMPETITORS,
    EXACT,
    EXPLAINED,
    PATHS,
    PEAR,
    Profile,
)
from pear.experiments.run import make_tasks
from pear.experiments.summary import (
    OTHER_USERS,
    Paired,
    cell,
    final,
    optimum_of,
    paired,
    published_cell,
    published_rows,
    user_costs,
)
from pear.experiments.trained import at_hand, taught_automaton

MEASURES = ("validity", "cost", "length")
COLUMNS = (
    "Users × runs",
    "Validity",
    "paper's",
    "Cost",
    "paper's",
    "Length",
    "paper's",
    "Both solve",
    "Cost there, ours / paper's",
    "Ratio (95%)",
    "Cheaper, equal, dearer",
    "Above the optimum",
)
CLASSIFIER_WORDS = {"logistic": "logistic regression", "tree": "decision tree"}


@dataclass(frozen=True)
class Line:
    """One row of a table of methods: a label, its rows, the published system's for these users.

    ``printed`` is the paper's name of it, where no outcomes of the same users are there.
    """

    label: str
    rows: pd.DataFrame
    theirs: pd.DataFrame
    printed: str = ""
    corruption: float | None = None
    others: bool = False


Lines = Callable[[pd.DataFrame, bool], Sequence[Line]]


def result_tables(
    name: str, title: str, printed: str, material: Material, lines_of: Lines, first: str = "Method"
) -> tuple[list[Table], pd.DataFrame]:
    """A table for each world, and the same lines as data."""
    tables, data = [], []
    for key, part in final(material.rows).groupby(["dataset", "classifier", "users"], sort=False):
        dataset, classifier, users = (str(value) for value in key)
        world = material.worlds[f"{dataset.replace(':', '.')}-{classifier}-{users}"]
        best = optimum_of(part).droplevel(["dataset", "classifier", "users"])
        texts = []
        for line in lines_of(part, world.published):
            texts.append(_texts(line, best, (printed, classifier, dataset, users)))
            data.append(
                {"dataset": dataset, "classifier": classifier, "users": users}
                | _figures(line, best)
            )
        tables.append(
            Table(
                f"{name}-{dataset.replace(':', '.')}-{classifier}-{users}",
                f"{title}: {where_words(dataset, classifier, users)}",
                (first, *COLUMNS),
                tuple(texts),
            )
        )
    return tables, pd.DataFrame(data)


def where_words(dataset: str, classifier: str, users: str) -> str:
    """A world in words.

    >>> where_words("adult", "tree", "hard")
    'Adult, Hard, decision tree'
    """
    words = f"{dataset_label(dataset)}, {users.title()}"
    kind = CLASSIFIER_WORDS.get(classifier, "")
    return f"{words}, {kind}" if kind else words


def above_optimum(costs: pd.Series, best: pd.Series) -> float:
    """How far the mean cost of the users solved lies above their mean optimum, as a share."""
    both = paired(costs, best)
    return both.ratio - 1.0 if both is not None else np.nan


def against(line: Line) -> Paired | None:
    """The line's users one by one against the published system's, where it is about the same."""
    if line.others or line.theirs.empty:
        return None
    return paired(user_costs(line.rows), user_costs(line.theirs))


def _figures(line: Line, best: pd.Series) -> dict[str, Any]:
    found: dict[str, Any] = {"line": line.label, "people": line.rows["user"].nunique()}
    for measure in MEASURES:
        ours, theirs = cell(line.rows, measure), cell(line.theirs, measure)
        found |= {
            measure: ours.mean,
            f"{measure}_spread": ours.spread,
            f"{measure}_low": ours.low,
            f"{measure}_high": ours.high,
            f"paper_{measure}": theirs.mean,
            f"paper_{measure}_spread": theirs.spread,
        }
    both = against(line)
    if both is not None:
        found |= {"both": both.users, "ratio": both.ratio, "low": both.low, "high": both.high}
    found["above_optimum"] = above_optimum(user_costs(line.rows), best)
    found["answered"] = line.rows["answered"].mean()
    return found


def _texts(line: Line, best: pd.Series, where: tuple[str, str, str, str]) -> tuple[str, ...]:
    cells = []
    for measure in MEASURES:
        theirs = with_spread(cell(line.theirs, measure), measure)
        if line.theirs.empty:
            known = published_cell(*where, line.printed, measure, line.corruption)
            digits = DIGITS[measure]
            theirs = "-" if known is None else f"{known[0]:.{digits}f} ± {known[1]:.{digits}f}"
        cells += [with_spread(cell(line.rows, measure), measure), theirs]
    both, above = against(line), above_optimum(user_costs(line.rows), best)
    compared = ("-",) * 4
    if both is not None:
        compared = (
            str(both.users),
            f"{both.ours:.1f} / {both.theirs:.1f}",
            f"{both.ratio:.2f} ({both.low:.2f} to {both.high:.2f})",
            f"{both.cheaper:.0%}, {both.equal:.0%}, {both.dearer:.0%}",
        )
    people, runs = line.rows["user"].nunique(), line.rows["run"].nunique()
    return (
        line.label + (" †" if line.others else ""),
        f"{people} × {runs}",
        *cells,
        *compared,
        "-" if np.isnan(above) else f"{above:.0%}",
    )


def published_of(
    rows: pd.DataFrame, method: Any, published: bool, corruption: float
) -> pd.DataFrame:
    """The published rows of a method for the users we have of it."""
    name = getattr(method, "published", "")
    first = rows.iloc[0]
    k = int(first["k"])
    world = (str(first["dataset"]), str(first["classifier"]), str(first["users"]))
    theirs = published_rows(*world, name if published else "", k=k, corruption=corruption)
    return theirs[theirs["user"].isin(rows["user"])]


def method_lines(rows: pd.DataFrame, published: bool) -> list[Line]:
    """One line per method, in the order they come."""
    lines = []
    for (name,), part in rows.groupby(["method"], sort=False):
        method: Any = find_method(str(name))
        printed = getattr(method, "published", "")
        lines.append(
            Line(
                getattr(method, "label", str(name)),
                part,
                published_of(part, method, published, 0.0),
                printed.upper().replace("_", "-"),
                others=(printed, str(part["classifier"].iloc[0])) in OTHER_USERS,
            )
        )
    return lines


def _competitors(profile: Profile) -> list[Task]:
    """All methods on all users, T questions of k = 2."""
    names = (*COMPETITORS, *PEAR, "pear-published-l", *EXACT, *PATHS)
    slices = make_tasks(profile, profile.only(("pear-slices-l",)), users=profile.few)
    return make_tasks(profile, (*profile.only(names), *profile.own())) + slices


def _classifiers(profile: Profile) -> list[Task]:
    """All methods for logistic regression and a decision tree."""
    methods = (*profile.only(COMPETITORS), *profile.only(PEAR), *profile.only(EXACT))
    methods = tuple(name for name in methods if name not in profile.not_shallow)
    return [
        task
        for classifier in profile.classifiers
        for task in make_tasks(profile, (*methods, *profile.own()), classifier=classifier)
    ]


def _explained(profile: Profile) -> list[Task]:
    """XPEAR and those it is compared with."""
    names = ("fare", "efare", *PEAR, *EXPLAINED, "pear-exact-nl", "pear-exact-l", "exact-true")
    return make_tasks(profile, profile.only(names))


def _compared(material: Material) -> Report:
    tables, data = result_tables(
        "competitors", "Methods compared", "eval-results", material, method_lines
    )
    words = (
        "Methods that ask nothing are given the mean weights of the prior; PEAR and XPEAR ask "
        f"{material.profile.questions} questions of two plans. PEAR (NL) and (L) lead algorithms "
        "1 and 2 over W-FARE, PEAR (exact) leads ours over the certified search. Every planner "
        "that searches returns the best plan it met; *path* is the same search returning the path "
        "of its most visited steps, as the published planners do.",
        reseeds_words(material),
        source_words(material),
    )
    return Report(
        "Which method gives whom a plan, and at what cost?",
        words,
        tuple(tables),
        data={
            "compared": data,
            "user_by_user": user_by_user(material),
            "rivals": rivals(material.rows),
        },
    )


def rivals(rows: pd.DataFrame) -> pd.DataFrame:
    """PEAR (L) against each competitor in each world: validity less theirs, and the ratio of costs
    on the users both solve with its interval."""
    found = []
    for key, part in final(rows).groupby(["dataset", "classifier", "users"], sort=False):
        mine = part[part["method"] == "pear-l"]
        if mine.empty:
            continue
        for name in COMPETITORS:
            theirs = part[part["method"] == name]
            theirs = theirs[theirs["user"].isin(mine["user"])]
            own = mine[mine["user"].isin(theirs["user"])]
            both = paired(user_costs(own), user_costs(theirs))
            if both is None:
                continue
            found.append(
                dict(zip(("dataset", "classifier", "users"), key, strict=True))
                | {"rival": find_method(name).label, "both": both.users, "ratio": both.ratio}
                | {"low": both.low, "high": both.high}
                | {"validity_gap": own["success"].mean() - theirs["success"].mean()}
            )
    return pd.DataFrame(found)


def reseeds_words(material: Material) -> str:
    """What another run of a method changes."""
    reseeds: dict[str, list[str]] = {}
    for name in dict.fromkeys(material.rows["method"].tolist()):
        method: Any = find_method(name)
        label = getattr(method, "label", name)
        reseeds.setdefault(getattr(method, "reseeds", "?"), []).append(label)
    changed = "; ".join(f"{what}: {_named(names)}" for what, names in reseeds.items())
    return (
        f"What a run reseeds: {changed}. No run reseeds the classifier, the users, their weights "
        "or a policy's training (the published program trains all policies but W-FARE's anew for "
        "each run, so its ± contains that)."
    )


def _named(labels: Sequence[str]) -> str:
    """Labels in a row, each in italics, since some have commas of their own."""
    return ", ".join(f"*{label}*" for label in labels)


def source_words(material: Material) -> str:
    """Where classifiers and users come from."""
    sources: dict[str, list[str]] = {}
    for world in material.worlds.values():
        name = where_words(world.dataset, world.classifier, world.users)
        sources.setdefault(world.source, []).append(name)
    words = "; ".join(f"{_named(names)}: {source}" for source, names in sources.items())
    return f"Sources: {words}."


def user_by_user(material: Material) -> pd.DataFrame:
    """One row per world, method and user: our cost and the published one, STOP not counted."""
    parts = []
    keys = ["dataset", "classifier", "users"]
    for key, part in final(material.rows).groupby(keys, sort=False):
        for line in method_lines(part, published=True):
            if line.theirs.empty or line.others:
                continue
            each = pd.concat(
                {"ours": user_costs(line.rows), "published": user_costs(line.theirs)}, axis=1
            )
            where: dict[str, Any] = dict(zip(keys, key, strict=True))
            parts.append(each.reset_index().assign(method=line.label, **where))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def _shallow(material: Material) -> Report:
    tables, data = result_tables(
        "classifiers", "Shallow classifiers", "eval-results-shallow", material, method_lines
    )
    words: tuple[str, ...] = (source_words(material),)
    if material.profile.not_shallow:
        words += (f"Not run here: {', '.join(material.profile.not_shallow)}.",)
    return Report(
        "Does it hold for other classifiers?",
        words,
        tuple(tables),
        data={"shallow": data, "shallow_rivals": rivals(material.rows)},
    )


def _reasons(material: Material) -> Report:
    tables, data = result_tables(
        "xpear", "Explained plans", "xpear-results", material, method_lines
    )
    return Report(
        "What do reasons for every step cost?",
        (
            "XPEAR (NL) and (L) walk an automaton taught by W-FARE: several walks of allowed moves "
            "side by side, where the published XPEAR takes a single walk and ends at a move that "
            "is not allowed. XPEAR (exact teacher) has another teacher as well: the certified "
            "search, with plans that clear the required score by a margin.",
        ),
        tuple(tables),
        _automata(material),
        data={"explained": data},
    )


def _automata(material: Material) -> tuple[Picture, ...]:
    """A W-EFARE automaton for each data set whose users were asked with one."""
    if not material.rows["method"].isin(["xpear-nl", "xpear-l"]).any():
        return ()
    pictures = []
    for key, world in material.worlds.items():
        dataset = key.rsplit("-", 2)[0]
        policy = at_hand((dataset, world.classifier, 0.0, 0, "wfare"), world, material.profile)
        if world.users == "all" and policy is not None:
            automaton = taught_automaton(world, "w-efare", material.profile, policy)
            pictures.append(automaton_picture(world, automaton))
    return tuple(pictures)


COMPARED = Experiment("competitors", _competitors, _compared)
SHALLOW = Experiment("classifiers", _classifiers, _shallow)
REASONS = Experiment("xpear", _explained, _reasons)
