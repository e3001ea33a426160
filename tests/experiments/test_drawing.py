"""Figures that can be read: edges beside nodes, few curves, each with its name."""

from itertools import pairwise
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from tests.planning.automaton.rules import rule_people, trained

from pear.datasets import loan_book_problem
from pear.datasets.problems import built_in_problem
from pear.experiments.drawing import MOST_CURVES, bend, passed, positions
from pear.experiments.lengths import CURVES, _costs_picture, _scores_picture
from pear.experiments.problems import automaton_picture, graph_picture
from pear.experiments.regret import _picture as regret_picture

pytestmark = pytest.mark.slow

pytest.importorskip("matplotlib")

PROBLEMS = {
    "loan book": loan_book_problem,
    "adult": lambda: built_in_problem("adult"),
    "givemecredit": lambda: built_in_problem("give_me_some_credit"),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_no_edge_of_a_cost_graph_passes_through_a_node(name):
    graph = PROBLEMS[name]().costs.to_networkx()
    graph.remove_nodes_from([node for node, degree in list(graph.degree) if not degree])
    places = positions([sorted(layer) for layer in nx.topological_generations(graph)], graph.edges)
    for edge in graph.edges:
        assert passed(edge, places, bend(edge, places)) == [], edge


def test_an_edge_through_a_node_is_seen_and_bent():
    graph = nx.DiGraph([("a", "b"), ("b", "c"), ("a", "c")])
    places = {"a": (0.0, 1.0), "b": (3.0, 1.0), "c": (6.0, 1.0)}
    assert passed(("a", "c"), places, 0.0) == ["b"]
    assert bend(("a", "c"), places) != 0.0
    assert bend(("a", "b"), places) == 0.0
    assert set(graph) == set(places)


@pytest.mark.parametrize("name", PROBLEMS)
def test_no_edge_of_a_cost_graph_leaves_the_picture(name):
    drawing = graph_picture(name, PROBLEMS[name]()).drawing
    drawing.canvas.draw()
    (axis,) = drawing.axes
    frame = axis.get_window_extent()
    edges = [text.arrow_patch for text in axis.texts if getattr(text, "arrow_patch", None)]
    assert edges
    for edge in edges:
        taken = edge.get_window_extent()
        assert frame.x0 <= taken.x0 <= taken.x1 <= frame.x1
        assert frame.y0 <= taken.y0 <= taken.y1 <= frame.y1


def test_a_cost_graph_says_whole_names():
    drawing = graph_picture("loan book", loan_book_problem()).drawing
    said = {" ".join(text.get_text().split()) for text in drawing.axes[0].texts}
    assert {"Monthly payments on other debts", "Guarantor", "Work contract"} <= said


def test_at_most_five_curves_each_with_its_name():
    rows = [
        {
            "dataset": "adult",
            "method": name,
            "bin": b,
            "score": b / 10,
            "length": 3.0,
            "validity": 1,
        }
        for name in CURVES
        for b in range(5)
    ]
    axes = _scores_picture(pd.DataFrame(rows)).drawing.axes
    for axis in axes:
        assert len(axis.lines) == MOST_CURVES == 5
        frame = axis.get_window_extent()
        boxes = sorted((t.get_window_extent() for t in axis.texts), key=lambda box: box.y0)
        assert len(boxes) == MOST_CURVES
        assert all(low.y1 <= high.y0 + 2 for low, high in pairwise(boxes)), "none over another"
        assert all(frame.y0 - 4 <= box.y0 and box.y1 <= frame.y1 + 4 for box in boxes)
        assert axis.get_legend() is None


def test_a_panel_without_rows_is_left_out():
    rows = [
        {"dataset": "adult", "users": users, "method": name, "length": 2.0, "cost": cost}
        for users, name in (("all", "pear-l"), ("all", "pear-exact-l"), ("hard", "pear-l"))
        for cost in (10.0, 20.0)
    ]
    axes = _costs_picture(pd.DataFrame(rows)).drawing.axes
    assert len(axes) == 5, "three of all, two of the hard: nobody ran the exact planner there"
    assert all(axis.has_data() for axis in axes)


def test_curves_of_regret_have_their_names_beside_them():
    curves = pd.DataFrame(
        [
            {
                "dataset": "adult", "response": response, "system": system, "k": k, "questions": q,
                "regret": 1 / (1 + q), "low": 0.0, "high": 1.0, "above": 2 / (1 + q),
            }
            for response in ("NL", "L")
            for system in ("PEAR", "PEAR (exact)", "published PEAR")
            for k in (2, 4)
            for q in range(11)
        ]
    )  # fmt: skip
    for axis in regret_picture(curves).drawing.axes:
        assert axis.get_legend() is None
        assert len(axis.lines) == len(axis.texts) == MOST_CURVES
        assert max(axis.get_xticks()) == 10, "no question is counted that nobody was asked"


def test_an_automaton_is_drawn_with_whole_words_and_its_walk_numbered():
    world = SimpleNamespace(
        dataset="adult", black_box=trained()[1], states=rule_people(8, 8),
        weights=np.tile([20.0, 5.0, 90.0, 1.0], (8, 1)),
    )  # fmt: skip
    found = automaton_picture(world, trained()[2])
    texts = [text.get_text() for text in found.drawing.axes[0].texts]
    assert {"Start", "Stop", "1", "2"} <= set(texts)
    assert not any("_" in text for text in texts)
