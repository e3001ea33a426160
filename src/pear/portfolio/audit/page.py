"""How is an audit shown to a person? One page of HTML that needs nothing else."""

from __future__ import annotations

from html import escape

from pear.portfolio.audit.cells import MEASURES, SHARES, Attribute, Cell, Flip
from pear.portfolio.audit.figures import intervals
from pear.portfolio.audit.findings import flipped_words, show, shown_p
from pear.portfolio.audit.report import Report

STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a; background: #fff;
       max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.7rem; } h2 { font-size: 1.3rem; margin-top: 2.5rem; } h3 { font-size: 1.05rem; }
.outcome { border-left: 6px solid #1f5a96; background: #eef4fa; padding: .8rem 1rem; }
.outcome.found { border-color: #a03000; background: #fdf1ea; }
table { border-collapse: collapse; width: 100%; margin: .5rem 0 1.5rem; font-size: .92rem; }
caption { text-align: left; font-weight: 600; padding: .3rem 0; }
th, td { border-bottom: 1px solid #c9c9c9; padding: .3rem .6rem; text-align: right; }
th:first-child, td:first-child { text-align: left; }
.small-group { color: #555; font-style: italic; }
.flag { font-weight: 700; color: #8a2900; }
.wide { overflow-x: auto; }
svg { width: 100%; min-width: 34rem; max-width: 44rem; height: auto; display: block;
      margin: .3rem 0 1rem; }
svg text { font: 12px system-ui, sans-serif; fill: #1a1a1a; }
svg .label { text-anchor: end; } svg .tick { text-anchor: middle; fill: #555; }
svg .small { fill: #555; font-style: italic; }
svg .grid { stroke: #ddd; } svg line.plain { stroke: #1f5a96; stroke-width: 2.5; }
svg circle.plain { fill: #1f5a96; }
svg line.found { stroke: #a03000; stroke-width: 2.5; stroke-dasharray: 6 3; }
svg circle.found { fill: #fff; stroke: #a03000; stroke-width: 2.5; }
@media print { body { margin: 0; max-width: none; } section { break-inside: avoid; } }
"""


def page(report: Report) -> str:
    """The report as a self-contained HTML page."""
    sections = "".join(_attribute(attribute) for attribute in report.attributes)
    title = f"Fairness of recourse: {report.problem}"
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title><style>{STYLE}</style></head><body><main>
<h1>{escape(title)}</h1>
{_outcome(report)}
<p>{report.people:,} people, {report.refused:,} of them refused by the model. A difference is
called found when it would arise by chance, in any of the {report.tests} tests of this report
together, with a probability of at most {report.level:.0%} (Holm's correction; Fisher's exact test
for shares; studentised permutations and Welch's test for means, the larger probability of both;
for the same people twice, McNemar's test and random signs). Bars are 95% intervals: bootstrap for
means, Wilson's for shares. Groups of fewer than {report.smallest} people are too small to
judge: that is not the same as equal.</p>
{_cautions(report)}{_conversations(report)}{sections}{_flips(report)}
<footer><p>Problem {escape(report.problem_fingerprint)}, model
{escape(report.model_fingerprint or "not named")}. Costs are by the weights the plans were made
with; cost and steps are over people who have a plan.</p></footer>
</main></body></html>
"""


def _outcome(report: Report) -> str:
    listed = "".join(
        f"<h3>{escape(kind)}, the largest first</h3><ul>{_items(found)}</ul>"
        for kind, found in report.findings.items()
    )
    return (
        f'<div class="outcome{" found" if listed else ""}" role="status">'
        f"<p><strong>{escape(report.words())}</strong></p>{listed}</div>"
    )


def _items(texts: list[str]) -> str:
    return "".join(f"<li>{escape(words)}</li>" for words in texts)


def _cautions(report: Report) -> str:
    parts = []
    if report.verdicts:
        said = ", ".join(f"{count:,} {name}" for name, count in sorted(report.verdicts.items()))
        parts.append(f"<p>What is proved of the refused: {escape(said)}.</p>")
    if report.cautions:
        parts.append(f"<h2>Caution</h2><ul>{_items(report.cautions)}</ul>")
    return "".join(parts)


def _attribute(attribute: Attribute) -> str:
    measures = [m for m in MEASURES if any(m in group.cells for group in attribute.groups)]
    parts = [f"<h2>By {escape(attribute.name)}</h2>"]
    if attribute.ungrouped:
        parts.append(f"<p>{attribute.ungrouped:,} refused people belong to none of the groups.</p>")
    undecided = [f"{g.label} {g.undecided:,}" for g in attribute.groups if g.undecided]
    if undecided:
        parts.append(f"<p>Neither a plan nor a proof of none: {escape('; '.join(undecided))}.</p>")
    if attribute.unheard:
        parts.append(
            f"<p>Of {attribute.unheard:,} people in conversations the group is not known: neither "
            "do the conversations tell it, nor is their id that of one person of the plans.</p>"
        )
    for measure in measures:
        rows = [(group.label, group.cells[measure]) for group in attribute.groups]
        present = [(label, cell) for label, cell in rows if cell.n]
        empty = len(rows) - len(present)
        if not present:
            continue
        share = measure in SHARES
        words = MEASURES[measure]
        note = f"<p>{empty} groups have nobody here.</p>" if empty else ""
        parts.append(
            f"<section><h3>{escape(words.capitalize())}</h3>"
            f"{_wide(intervals(f'{words} by {attribute.name}', present, share), 'Figure')}"
            f"{_table(f'{words}, by {attribute.name}', present, share)}{note}</section>"
        )
    return "".join(parts)


def _table(caption: str, rows: list[tuple[str, Cell]], share: bool) -> str:
    lines = "".join(_line(label, cell, share) for label, cell in rows)
    heads = ("people", "mean", "95% interval", "against everybody else", "adjusted p")
    head = "".join(f'<th scope="col">{name}</th>' for name in ("group", *heads))
    table = (
        f"<table><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{lines}</tbody></table>"
    )
    return _wide(table, caption)


def _wide(content: str, label: str) -> str:
    """Something that scrolls by itself where the screen is narrow, with the keyboard too."""
    name = escape(label, quote=True)
    box = f'<div class="wide" tabindex="0" role="region" aria-label="{name}">'
    return f"{box}{content}</div>" if content else ""


def _line(label: str, cell: Cell, share: bool) -> str:
    name = f'<th scope="row">{escape(label)}</th><td>{cell.n:,}</td>'
    if cell.estimate is None:
        words = "too small to judge"
        return f'<tr>{name}<td colspan="4" class="small-group">{words}</td></tr>'
    e = cell.estimate
    difference = "" if cell.difference is None else f"{cell.difference:+.3g}"
    if share and cell.difference is not None:
        difference = f"{100 * cell.difference:+.1f} points"
    return (
        f"<tr>{name}<td>{show(e.mean, share)}</td>"
        f"<td>{show(e.low, share)} to {show(e.high, share)}</td><td>{difference}</td>"
        f"{_probability(cell.adjusted, cell.flagged)}</tr>"
    )


def _flips(report: Report) -> str:
    parts = ["<h2>The same people with another attribute</h2>"]
    if report.not_flipped:
        parts.append(f"<p>Not done: {escape(report.not_flipped)}.</p>")
    for name in report.no_features:
        parts.append(
            f"<p><strong>{escape(name)}</strong> is no feature of the problem: the model does not "
            "see it, so that there is nothing to flip.</p>"
        )
    for name in report.unused:
        parts.append(
            f"<p>Neither the model nor the costs look at <strong>{escape(name)}</strong>: the same "
            "person gets the same decision and the same plan whatever it is.</p>"
        )
    if report.flips:
        heads = ("people", "approved at once", "plan gained", "plan lost", "adjusted p",
                 "plan costs more by", "adjusted p")  # fmt: skip
        head = "".join(f'<th scope="col">{name}</th>' for name in ("who as whom", *heads))
        lines = "".join(_flip(entry) for entry in report.flips)
        caption = "Refused people, planned for again with one protected attribute changed"
        table = (
            f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead>"
            f"<tbody>{lines}</tbody></table>"
        )
        parts.append(_wide(table, caption))
        parts.append(f"<p>{_caveats(report)}</p>")
    return f"<section>{''.join(parts)}</section>"


def _caveats(report: Report) -> str:
    text = (
        "Only the refused are flipped: they can lose nothing by another decision, so a model that "
        "uses an attribute erratically can look better for them both ways. At most "
        f"{report.most_flips:,} people of a group are taken, at random. A number becomes that of "
        "the other group's middle member, the same for all."
    )
    if undecided := sum(entry.undecided for entry in report.flips):
        text += (
            f" In {undecided:,} cases the search told neither a plan nor that there is none, one "
            "way or the other: they are in none of these numbers."
        )
    return text


def _flip(entry: Flip) -> str:
    some = f"{entry.n:,}" + (f" of {entry.of:,}" if entry.of > entry.n else "")
    name = f'<th scope="row">{escape(flipped_words(entry))}</th><td>{some}</td>'
    shares = (entry.share_approved, entry.share_plan_gained, entry.share_plan_lost)
    if entry.too_small:
        return f'<tr>{name}<td colspan="6" class="small-group">too small to judge</td></tr>'
    d = entry.difference
    amount = f"{d.mean:+.3g} ({d.low:+.3g} to {d.high:+.3g})" if d else "too few with both plans"
    cells = "".join(f"<td>{share or 0:.1%}</td>" for share in shares)
    return (
        f"<tr>{name}{cells}{_probability(entry.plan_adjusted, entry.plan_flagged)}"
        f"<td>{amount}</td>{_probability(entry.adjusted, entry.flagged)}</tr>"
    )


def _conversations(report: Report) -> str:
    if not report.conversations:
        return (
            "<p>No conversations were given, so the questions needed and the fit of the prior by "
            "group are not known.</p>"
        )
    text = (
        f"Questions and the prior's fit are over {report.conversations:,} conversations of "
        f"{report.talkers:,} people; who talked more than once counts once."
    )
    if all(attribute.unheard == report.talkers for attribute in report.attributes):
        text += (
            " Of none of them the group is known, so nothing is shown: the conversations do not "
            "tell the attributes, and their ids are not those of the plans."
        )
    return f"<p>{text}</p>"


def _probability(adjusted: float | None, flagged: bool) -> str:
    if flagged:
        return f'<td class="flag">{shown_p(adjusted)} found</td>'
    return f"<td>{shown_p(adjusted)}</td>"
