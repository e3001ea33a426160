"""Drawings of automata: well formed, complete, with the walk marked by more than colour."""

from xml.etree import ElementTree

from tests.planning.automaton.rules import rule_people, trained

from pear.planning.automaton.automaton import START
from pear.planning.automaton.drawing import WALKED, picture, to_dot, to_svg
from pear.planning.automaton.planner import AutomatonPlanner
from pear.planning.automaton.tree import STOP

SVG = "{http://www.w3.org/2000/svg}"


def walked():
    _, model, automaton = trained()
    plan = AutomatonPlanner(automaton, model).plan(rule_people(1, 8)[0], [20.0, 5.0, 90.0, 1.0])
    assert plan.length >= 1
    return automaton, plan.moves


def test_svg_names_every_node_and_numbers_the_walk():
    automaton, moves = walked()
    root = ElementTree.fromstring(to_svg(automaton, moves, least=1))
    assert root.find(f"{SVG}title").text.startswith("W-EFARE automaton learned from")
    assert automaton.name(moves[0]) in root.find(f"{SVG}desc").text
    titles = {title.text for title in root.iter(f"{SVG}title")}
    assert {automaton.name(node) for node in (*automaton.nodes, STOP)} <= titles
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert texts[-len(moves) - 1 :] == [str(i + 1) for i in range(len(moves) + 1)]


def test_boxes_do_not_overlap():
    automaton, _ = walked()
    root = ElementTree.fromstring(to_svg(automaton, least=1))
    boxes = [
        tuple(float(rect.get(key)) for key in ("x", "y", "width", "height"))
        for rect in root.iter(f"{SVG}rect")
        if rect.get("x")
    ]
    for i, (x, y, w, h) in enumerate(boxes):
        for other_x, other_y, *_ in boxes[i + 1 :]:
            assert abs(x - other_x) >= w or abs(y - other_y) >= h


def test_an_edge_taken_twice_has_both_numbers():
    automaton, moves = walked()
    root = ElementTree.fromstring(to_svg(automaton, [moves[0]] * 3, least=1))
    assert [text.text for text in root.iter(f"{SVG}text")][-3:] == ["1", "2, 3", "4"]
    numbers = [rect for rect in root.iter(f"{SVG}rect") if rect.get("height") == "18"]
    assert len({(rect.get("x"), rect.get("y")) for rect in numbers}) == len(numbers) == 3


def test_edges_that_pass_over_columns_run_below_all_boxes():
    automaton, _ = walked()
    # From the first move to the second, back, and from there past the second to STOP.
    root = ElementTree.fromstring(to_svg(automaton, [2, 0, 2], least=10_000))
    lowest = max(
        float(rect.get("y")) + float(rect.get("height"))
        for rect in root.iter(f"{SVG}rect")
        if rect.get("x")
    )
    lanes = [path.get("d").split() for path in root.iter(f"{SVG}path") if "C" in path.get("d")]
    levels = [float(curve[curve.index("L") + 2]) for curve in lanes if "L" in curve]
    assert levels
    assert min(levels) > lowest
    assert max(levels) < float(root.get("height"))


def test_without_a_walk_nothing_is_marked():
    automaton, _ = walked()
    assert WALKED not in to_svg(automaton)
    assert WALKED not in to_dot(automaton)


def test_dot_has_every_edge_and_the_walk():
    automaton, moves = walked()
    dot = to_dot(automaton, moves, least=1)
    assert dot.count(" -> ") == len(picture(automaton, moves, 1).edges)
    assert f'"{START}" -> "{moves[0]}" [label="step 1' in dot
    assert f'"{moves[-1]}" -> "{STOP}" [label="step {len(moves) + 1}' in dot


def test_rare_edges_are_left_out_but_never_those_of_the_walk():
    automaton, moves = walked()
    few = picture(automaton, moves, least=10_000)
    assert set(few.edges) == set(few.walked)
