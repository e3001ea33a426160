"""Drawings of automata: complete, with the walk marked by more than colour."""

from tests.planning.automaton.rules import rule_people, trained

from pear.planning.automaton.automaton import START
from pear.planning.automaton.drawing import WALKED, picture, to_dot
from pear.planning.automaton.planner import AutomatonPlanner
from pear.planning.automaton.tree import STOP


def walked():
    _, model, automaton = trained()
    plan = AutomatonPlanner(automaton, model).plan(rule_people(1, 8)[0], [20.0, 5.0, 90.0, 1.0])
    assert plan.length >= 1
    return automaton, plan.moves


def test_every_node_is_named_and_the_steps_of_the_walk_are_numbered():
    automaton, moves = walked()
    dot = to_dot(automaton, moves, least=1)
    assert all(f'label="{automaton.name(node)}"' in dot for node in (*automaton.nodes, STOP))
    assert all(f'label="step {number} (' in dot for number in range(1, len(moves) + 2))


def test_an_edge_taken_twice_has_both_numbers():
    automaton, moves = walked()
    dot = to_dot(automaton, [moves[0]] * 3, least=1)
    assert 'label="step 2, 3 (' in dot


def test_without_a_walk_nothing_is_marked():
    automaton, _ = walked()
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
