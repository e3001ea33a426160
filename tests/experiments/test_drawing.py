"""Figures that can be read: edges beside nodes, few curves, each with its name."""

from itertools import pairwise

import networkx as nx
import pandas as pd
import pytest

from pear.datasets import loan_book_problem
from pear.datasets.problems import built_in_problem
from pear.experiments.lengths import CURVES, MOST_CURVES, _scores_picture
from pear.experiments.problems import _picture, bend, passed, positions

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
    places = positions(graph)
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
    drawing = _picture(name, PROBLEMS[name]()).drawing
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
    drawing = _picture("loan book", loan_book_problem()).drawing
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
        heights = sorted(text.get_position()[1] for text in axis.texts)
        assert len(heights) == MOST_CURVES
        assert all(b > a for a, b in pairwise(heights)), "none over another"
        assert axis.get_legend() is None
