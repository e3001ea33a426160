"""A finished search as plans with certificates."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from pear.decision import BlackBox
from pear.planning.exact.front import Lane
from pear.planning.exact.levels import Floats
from pear.planning.exact.search import Search
from pear.problem import Certificate, Plan, walk
from pear.problem.plan import Verdict


def plans_of(
    search: Search, black_box: BlackBox, chosen: Sequence[int] | None = None
) -> list[Plan]:
    """Plans of the chosen lanes, with the score of every state on the way."""
    numbers = range(len(search.lanes)) if chosen is None else chosen
    lanes, tables = [search.lanes[number] for number in numbers], search.tables
    inner = [
        walk(tables.starts[lane.number], tables.problem.actions, lane.moves)[1:-1] for lane in lanes
    ]
    sizes = [len(states) for states in inner]
    scores = np.zeros(0)
    if sum(sizes):
        scores = black_box.score(np.concatenate(inner))
        groups = search.groups[[lane.number for lane in lanes]]
        asked = search.ledger.asked
        asked += np.bincount(np.repeat(groups, sizes), minlength=len(asked))
    parts = np.split(scores, np.cumsum(sizes)[:-1]) if lanes else []
    return [
        _plan(lane, part, search, black_box.fingerprint)
        for lane, part in zip(lanes, parts, strict=True)
    ]


def _plan(lane: Lane, inner_scores: Floats, search: Search, fingerprint: str) -> Plan:
    best, tables = lane.incumbent, search.tables
    weights = tables.weights[lane.number]
    return tables.problem.make_plan(
        tables.starts[lane.number],
        lane.moves,
        weights if len(weights) > 1 else weights[0],
        np.array([lane.start_score, *inner_scores, *([best.score] if best and best.moves else [])]),
        certificate_of(lane, search),
        limits=tables.limits[lane.number],
        model_fingerprint=fingerprint,
    )


def certificate_of(lane: Lane, search: Search) -> Certificate:
    """What the search has proven for one lane."""
    best, front = lane.incumbent, search.front_of[lane.number]
    proven = front.decided and not front.stopped
    verdict: Verdict
    lower = None if proven else front.lower_bound(lane)
    if best is None:
        verdict = "infeasible" if proven else "unknown"
    else:
        verdict, lower = ("optimal", best.cost) if proven else ("bounded", lower)
    return Certificate(
        verdict=verdict,
        lower_bound=lower if lower is not None and np.isfinite(lower) else None,
        upper_bound=best.cost if best else None,
        rows=int(search.ledger.asked[search.groups[lane.number]]),
        seconds=time.monotonic() - search.clock.began,
        max_length=int(search.tables.max_steps[lane.number]),
        max_changes_per_feature=search.tables.max_changes,
        reproducible=proven or not search.clock.interfered,
    )
