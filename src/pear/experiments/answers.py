"""What do the results say about the paper's three questions? The first half page.

Every verdict is computed by a rule that is printed with it. Findings about causes are rows of
``findings.csv``, each with the command that made its figures.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files

import numpy as np
import pandas as pd

from pear.experiments.drawing import Table
from pear.experiments.experiment import Report
from pear.experiments.registry import dataset_label, find_method
from pear.experiments.tables import where_words

TOLERATED = 0.2
"""How much dearer plans may get with edges removed for Q3 to hold; the paper's own reach 0.18."""

QUESTIONS = {
    "Q1": "Does regret fall as PEAR asks more?",
    "Q2": "Does PEAR do better than its competitors in validity and cost?",
    "Q3": "Is PEAR robust to a wrong cost graph?",
}


def answers_page(reports: Mapping[str, Report], opening: str) -> str:
    """The beginning of the page: verdicts, one table, one figure, findings."""
    data = {name: table for report in reports.values() for name, table in report.data.items()}
    parts = ["# Results\n"]
    for name, verdict in verdicts(data).items():
        parts.append(f"**{name}. {QUESTIONS[name]}** {verdict}\n")
    table = headline(data)
    if table is not None:
        parts.append(table.markdown("##"))
    shown = [picture for report in reports.values() for picture in report.pictures]
    if any(picture.name == "regret" for picture in shown):
        parts.append("![Regret against questions](images/results/regret.svg)\n")
    parts.append(f"{opening}\n")
    known = findings()
    # They are about the paper's users: without any of those there is nothing to compare.
    if len(known) and "both" in data.get("compared", ()):
        parts.append("## What explains the differences\n")
        parts += [f"- {row.finding} (`{row.command}`)" for row in known.itertuples()]
        parts.append("")
    return "\n".join(parts)


def findings() -> pd.DataFrame:
    """What trials showed: ``finding`` and the ``command`` that made its figures."""
    with files("pear.experiments").joinpath("findings.csv").open(encoding="utf-8") as file:
        return pd.read_csv(file)


def verdicts(data: Mapping[str, pd.DataFrame]) -> dict[str, str]:
    """A verdict for each question there are rows for."""
    found = {}
    if len(data.get("regret_curves", ())):
        found["Q1"] = first_verdict(data["regret_curves"])
    rivals = [data[name] for name in ("rivals", "shallow_rivals") if len(data.get(name, ()))]
    if rivals:
        found["Q2"] = second_verdict(pd.concat(rivals, ignore_index=True))
    if len(data.get("removed", ())):
        found["Q3"] = third_verdict(data["removed"])
    return found


def first_verdict(curves: pd.DataFrame) -> str:
    """Holds where regret at the end is below 1 (no question) by its whole interval."""
    ours = curves[curves["low"].notna()]
    last = ours.loc[ours.groupby(["dataset", "system", "response", "k"])["questions"].idxmax()]
    failed = last[~(last["high"] < 1.0)]
    verdict = "Holds" if failed.empty else f"Does not hold: not for {', '.join(_curves(failed))}"
    worst = last.sort_values("regret").tail(1)
    said = (
        f"**{verdict}.** Regret by the paper's rule, 1 before the first question, ends at "
        f"{last['regret'].min():.2f} to {last['regret'].max():.2f} in the {len(last)} "
        f"conversations of the figure (most: {_curves(worst)[0]})"
    )
    theirs = curves[curves["system"] == "published PEAR"]
    if len(theirs):
        theirs = theirs.loc[theirs.groupby(["dataset", "response", "k"])["questions"].idxmax()]
        low, high = theirs["regret"].min(), theirs["regret"].max()
        said += f"; the published system's at {low:.2f} to {high:.2f}"
    return f"{said}."


def _curves(rows: pd.DataFrame) -> list[str]:
    return [
        f"{dataset_label(str(row.dataset))} {row.system} {row.response} k = {row.k}"
        for row in rows.itertuples()
    ]


def second_verdict(rivals: pd.DataFrame) -> str:
    """Holds where PEAR (L) solves at least as many, and is cheaper on users both solve."""
    against = rivals[rivals["validity_gap"].notna()]
    fewer = against[against["validity_gap"] < -0.005]
    dearer = against[against["low"] > 1.0]
    unclear = against[(against["low"] <= 1.0) & (against["high"] >= 1.0)]
    good = len(against) - len(pd.concat([fewer, dearer, unclear]).index.unique())
    verdict = "Holds" if good == len(against) else "Does not hold everywhere"
    said = [
        f"**{verdict}.** In {good} of {len(against)} comparisons (a competitor in a world) PEAR "
        "(L) solves at least as many users and is cheaper on those both solve, by the whole "
        "interval of the ratio"
    ]
    for words, rows in (("fewer solved", fewer), ("dearer", dearer), ("not told apart", unclear)):
        if len(rows):
            said.append(f"{words}: {', '.join(_against(rows))}")
    return "; ".join(said) + "."


def _against(rows: pd.DataFrame) -> list[str]:
    return [
        f"{row.rival} ({where_words(str(row.dataset), str(row.classifier), str(row.users))})"
        for row in rows.itertuples()
    ]


def third_verdict(removed: pd.DataFrame) -> str:
    """Holds where no share of edges makes plans dearer by more than :data:`TOLERATED`."""
    bad = removed[removed["ratio"] > 1.0 + TOLERATED]
    lost = removed[removed["validity_gap"] < -0.05]
    verdict = "Holds" if bad.empty and lost.empty else "Does not hold"
    worst = removed.loc[removed.groupby("line", sort=False)["ratio"].idxmax()]
    told = [
        f"{row.line} {float(str(row.ratio)) - 1.0:+.0%} "
        f"({where_words(str(row.dataset), 'network', str(row.users))}, "
        f"{row.corruption:g} of the edges), and {float(str(row.told)) - 1.0:+.0%} where the same "
        "planner is told the true weights of the edges left"
        for row in worst.itertuples()
    ]
    validity = "" if lost.empty else f"; validity falls by up to {-lost['validity_gap'].min():.2f}"
    return (
        f"**{verdict}.** In {len(bad)} of {len(removed)} cases plans are more than "
        f"{TOLERATED:.0%} dearer with edges removed, on users both solve; at worst "
        f"{'; '.join(told)}{validity}."
    )


def headline(data: Mapping[str, pd.DataFrame]) -> Table | None:
    """One row per world: the published PEAR, ours by the same algorithms, ours, the optimum."""
    parts = [data[name] for name in ("compared", "shallow") if len(data.get(name, ()))]
    if not parts:
        return None
    lines = pd.concat(parts, ignore_index=True)
    rows = []
    for (dataset, kind, users), part in lines.groupby(
        ["dataset", "classifier", "users"], sort=False
    ):
        known = part.set_index("line")
        pear, exact = find_method("pear-l").label, find_method("pear-exact-l").label
        best = find_method("exact-true").label
        if pear not in known.index:
            continue
        mine = known.loc[pear]
        rows.append(
            (
                where_words(str(dataset), str(kind), str(users)),
                f"{mine['people']:.0f}",
                f"{mine['paper_validity']:.2f}, {mine['paper_cost']:.0f}",
                f"{mine['validity']:.2f}, {mine['cost']:.0f}",
                _ratio(mine),
                *(_pair(known, name) for name in (exact, best)),
            )
        )
    if not rows:
        return None
    return Table(
        "headline",
        "PEAR with logistic answers, ten questions of two plans: validity, mean cost",
        (
            "Users",
            "n",
            "Published",
            "Ours, algorithms 1 and 2",
            "Ratio on users both solve (95%)",
            "Ours, exact",
            "Optimum",
        ),
        tuple(rows),
        (
            "Costs count 1 for STOP, under the true weights, of those each solves; the ratio does "
            "not count it, and is over the users both solve: a system that solves more people has "
            "the harder ones in its mean.",
        ),
    )


def _ratio(line: pd.Series) -> str:
    if "ratio" not in line or np.isnan(line["ratio"]):
        return "-"
    return f"{line['ratio']:.2f} ({line['low']:.2f} to {line['high']:.2f})"


def _pair(known: pd.DataFrame, name: str) -> str:
    if name not in known.index:
        return "-"
    line = known.loc[name]
    people = "" if line["people"] == known["people"].max() else f" (n = {line['people']:.0f})"
    return f"{line['validity']:.2f}, {line['cost']:.0f}{people}"


def effort_table(rows: pd.DataFrame) -> Table:
    """Rows asked and seconds per user of the finished conversation or plan, network classifiers."""
    chosen = rows[(rows["k"] <= 2) & (rows["corruption"] == 0)]
    keys = ["dataset", "users", "method", "classifier"]
    last = chosen.groupby(keys)["questions"].transform("max")
    chosen = chosen[(chosen["questions"] == last) & (chosen["classifier"] == "network")]
    texts = []
    for (name, dataset, users), part in chosen.groupby(["method", "dataset", "users"], sort=False):
        texts.append(
            (
                getattr(find_method(str(name)), "label", str(name)),
                where_words(str(dataset), "network", str(users)),
                f"{part['rows'].mean():,.0f}",
                f"{part['seconds'].mean():.2f}",
                f"{part['answered'].mean():.1f}",
            )
        )
    return Table(
        "effort",
        "Rows asked of the classifier and seconds, per user",
        ("Method", "Users", "Rows asked", "Seconds", "Questions answered"),
        tuple(texts),
        ("Seconds are of one process on the machine that ran it, beside whatever else ran.",),
    )
