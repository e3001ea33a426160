"""What does ``pear check`` say about a problem: its actions in words, and what looks wrong?"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np
import pandas as pd

from pear.arrays import Floats
from pear.problem import column_names
from pear.problem.actions import Action, Requirement
from pear.problem.features import Feature, States
from pear.problem.problem import Problem
from pear.problem.values import plain
from pear.problem.wording import MONEY, show_amount, show_number

BATCH = 8_192

MANY, SAME_ORDER = 20, 0.9999
"""The number of different values, and the rank correlation, from which one number is taken to
determine another."""


def describe_actions(problem: Problem, states: States | None = None) -> list[str]:
    """Each action in words, for somebody among ``states`` ``(n, d)`` to whom it applies.

    >>> from pear.problem import ActionSpace, CostGraph, FeatureSpace
    >>> space = FeatureSpace((Feature("income", scale=(0.0, 6000.0), unit="€"),))
    >>> earn = ActionSpace(space, (Action("earn_more", "income", "add", (100, 1000)),))
    >>> describe_actions(Problem(space, earn, CostGraph(space)))
    ['earn_more: Increase your income from €3,000 to €3,100 (2 amounts, 100 to 1,000)']
    """
    people = middle_states(problem) if states is None or not len(states) else states[:BATCH]
    legal = problem.actions.changes_legally(people)
    money = next((f.unit for f in problem.space.features if f.unit in MONEY), "")
    lines = []
    for number, action in enumerate(problem.actions.actions):
        moves = np.flatnonzero(problem.actions.action_of == number)
        shown = np.argwhere(legal[:, moves])
        row, move = (shown[0][0], moves[shown[0][1]]) if len(shown) else (0, moves[0])
        column = problem.actions.feature_of[move]
        before = float(people[row, column])
        after = float(problem.actions.results(people[[row]])[0, move])
        words = problem.actions.phrase(int(move), before, after)
        grid = _grid_words(problem.space[action.feature], action)
        lines.append(f"{action.name}: {words}{grid}{_fact_words(action, money)}")
    return lines


def _fact_words(action: Action, money: str) -> str:
    """What is known of an action's time and money: ", 4 to 40 weeks, €200 once"."""
    said = []
    units = (("weeks", " weeks", "at once"), ("once", " once", "nothing to pay"))
    for key, unit, nothing in (*units, ("monthly", " a month", "nothing a month")):
        if facts := getattr(action, key):
            sign = "" if key == "weeks" else money
            ends = dict.fromkeys(show_amount(end(facts), sign) for end in (min, max))
            said.append(f", {' to '.join(ends)}{unit}" if any(facts) else f", {nothing}")
    return "".join(said)


def middle_states(problem: Problem) -> States:
    """Plausible states, ``(n, d)``: first and last categories, numbers in mid-scale."""
    low, high = [], []
    for feature in problem.space.features:
        if feature.is_categorical:
            low.append(0.0)
            high.append(len(feature.categories) - 1.0)
        elif feature.kind == "boolean":
            low.append(0.0)
            high.append(1.0)
        else:
            first, last = feature.scale or (feature.lower or 0.0, feature.upper or 0.0)
            middle = (first + last) / 2
            middle = float(round(middle)) if feature.kind == "integer" else middle
            low.append(middle)
            high.append(middle)
    return np.array([low, high])


def doubts_about(problem: Problem, states: States | None = None) -> list[str]:
    """What somebody should review, as sentences; more is checked where states ``(n, d)`` are
    given."""
    found = [
        *_doubtful_goal(problem),
        *_changes_nobody_should_ask_for(problem),
        *_raised_debts(problem),
        *_arguments_beyond_scale(problem),
    ]
    if states is None or not len(states):
        return found
    found += _people_beyond_scale(problem, states)
    found += _bound_together(problem, states)
    found += _unseen_categories(problem, states)
    found += _never_applicable(problem, states)
    found += _unreachable_requirements(problem, states)
    found += _below_everyone(problem, states)
    return found


def _grid_words(feature: Feature, action: Action) -> str:
    count = len(action.arguments)
    if count == 1:
        words = ""
    elif feature.is_number:
        amounts = [float(argument) for argument in action.arguments]
        ends = f"{show_number(amounts[0])} to {show_number(amounts[-1])}"
        words = f" ({count} {'amounts' if action.mode == 'add' else 'values'}, {ends})"
    else:
        words = f" (or {count - 1} other value{'s' if count > 2 else ''})"
    needs = "; ".join(_requirement_words(requirement) for requirement in action.requires)
    return words + (f", needs {needs}" if needs else "")


def _requirement_words(requirement: Requirement) -> str:
    parts = []
    if requirement.values:
        parts.append(" or ".join(str(value) for value in requirement.values))
    if requirement.lower is not None:
        parts.append(f"at least {show_number(requirement.lower)}")
    if requirement.upper is not None:
        parts.append(f"at most {show_number(requirement.upper)}")
    return f"{requirement.feature}: {' and '.join(parts)}"


def unreviewed(problem: Problem) -> list[str]:
    """Names of the actions of a draft that nobody has approved yet.

    >>> from pear.problem import ActionSpace, CostGraph, FeatureSpace
    >>> space = FeatureSpace((Feature("income"),))
    >>> drafted = Action("earn_more", "income", "add", (100,), reviewed=False)
    >>> unreviewed(Problem(space, ActionSpace(space, (drafted,)), CostGraph(space)))
    ['earn_more']
    """
    return [action.name for action in problem.actions.actions if not action.reviewed]


def _doubtful_goal(problem: Problem) -> Iterator[str]:
    goal = problem.goal
    feared = goal.target and not column_names.NEGATION.found_in(goal.target)
    if feared and column_names.outcome(goal.target) < 0:
        yes = [value for value in goal.favourable if str(plain(value)).lower() in column_names.YES]
        for value in yes:
            yield (
                f"the favourable class is '{value}' of '{goal.target}', which sounds like the "
                "decision people fear; check 'favourable' of the goal"
            )
    for value in goal.favourable:
        if column_names.outcome(str(value)) < 0:
            yield (
                f"the favourable class is '{value}', which sounds like the decision people fear; "
                "check 'favourable' of the goal"
            )


def _changes_nobody_should_ask_for(problem: Problem) -> Iterator[str]:
    for action in problem.actions.actions:
        feature = problem.space[action.feature]
        if column_names.is_personal(feature.name, feature.categories):
            why = "tells who a person is"
        elif fixed := column_names.why_fixed(feature.name):
            why = f"sounds like {fixed}"
        else:
            continue
        yield (
            f"action '{action.name}' changes '{feature.name}', which {why}; if so, remove it and "
            "mark the feature immutable"
        )


def _arguments_beyond_scale(problem: Problem) -> Iterator[str]:
    for action in problem.actions.actions:
        feature = problem.space[action.feature]
        if feature.scale is None or action.mode != "set" or not feature.is_number:
            continue
        low, high = feature.scale
        beyond = [argument for argument in action.arguments if not low <= float(argument) <= high]
        if beyond:
            yield (
                f"action '{action.name}' leads to {show_number(float(beyond[-1]))}, outside of the "
                f"scale of '{feature.name}' ({show_number(low)} to {show_number(high)}); "
                f"{_MISJUDGED}"
            )


_MISJUDGED = "costs misjudge changes out there: widen 'scale', or bound the action"


def _people_beyond_scale(problem: Problem, states: States) -> Iterator[str]:
    """People in the data who lie outside a feature's scale, or whom an action takes there."""
    actions = problem.actions
    outside = np.zeros(len(actions), bool)
    scales = [
        problem.space[action.feature].scale or (-np.inf, np.inf) for action in actions.actions
    ]
    low, high = np.array(scales, float)[actions.action_of].T
    for first in range(0, len(states), BATCH):
        part = states[first : first + BATCH]
        after, before = actions.results(part), part[:, actions.feature_of]
        leaves = ((after > high) & (before <= high)) | ((after < low) & (before >= low))
        outside |= (leaves & actions.changes_legally(part)).any(axis=0)
    for column in actions.actionable:
        feature = problem.space.features[column]
        if feature.scale is None or not feature.is_number:
            continue
        ends = f"({show_number(feature.scale[0])} to {show_number(feature.scale[1])})"
        codes = states[:, column]
        n = int(((codes < feature.scale[0]) | (codes > feature.scale[1])).sum())
        if n:
            yield (
                f"{n:,} of {len(states):,} people lie outside of the scale of '{feature.name}' "
                f"{ends}; {_MISJUDGED}"
            )
        leaving = actions.action_of[outside & actions.adds & (actions.feature_of == column)]
        for number in np.unique(leaving):
            yield (
                f"action '{actions.actions[number].name}' takes people out of the scale of "
                f"'{feature.name}' {ends}; {_MISJUDGED}"
            )


def _raised_debts(problem: Problem) -> Iterator[str]:
    for action in problem.actions.actions:
        feature = problem.space[action.feature]
        if not feature.is_number or not column_names.is_owed(feature.name, feature.label):
            continue
        rising = action.mode == "set" or any(float(amount) > 0 for amount in action.arguments)
        if rising and action.direction != "decrease":
            yield (
                f"action '{action.name}' can raise '{feature.name}', which sounds like a debt or a "
                'count of missed payments; add direction = "decrease" or remove those arguments'
            )


def _bound_together(problem: Problem, states: States) -> Iterator[str]:
    """Pairs of numbers of which one determines the other: nobody can change one of them alone."""
    numbers = [i for i, f in enumerate(problem.space.features) if f.is_number]
    changed = {problem.space.index(action.feature) for action in problem.actions.actions}
    some = states[:BATCH, numbers]
    some = some[~np.isnan(some).any(axis=1)]
    if len(some) < MANY or len(numbers) < 2:
        return
    ranks = pd.DataFrame(some).rank().to_numpy()
    varied = [place for place in range(len(numbers)) if len(np.unique(some[:, place])) >= MANY]
    for first, second in combinations(varied, 2):
        if changed.isdisjoint((numbers[first], numbers[second])):
            continue
        together = np.corrcoef(ranks[:, first], ranks[:, second])[0, 1]
        if abs(together) > SAME_ORDER:
            one, other = (problem.space.features[numbers[i]].name for i in (first, second))
            yield (
                f"'{one}' and '{other}' hold the same information in the data, and a step changes "
                "only one of them; give the model only one, or remove the step"
            )


def _unseen_categories(problem: Problem, states: States) -> Iterator[str]:
    for column, feature in enumerate(problem.space.features):
        if not feature.is_categorical:
            continue
        stated = states[~np.isnan(states[:, column]), column].astype(int)
        seen = np.bincount(stated, minlength=len(feature.categories)) > 0
        unseen = [c for c, is_seen in zip(feature.categories, seen, strict=True) if not is_seen]
        proposed = {
            x for a in problem.actions.actions if a.feature == feature.name for x in a.arguments
        }
        for category in unseen:
            more = ", and an action proposes it" if category in proposed else ""
            yield f"nobody in the data has {feature.name} = {category}{more}"


def _never_applicable(problem: Problem, states: States) -> Iterator[str]:
    actions = problem.actions
    applies = np.zeros(len(actions), bool)
    for first in range(0, len(states), BATCH):
        applies |= actions.changes_legally(states[first : first + BATCH]).any(axis=0)
    for number, action in enumerate(actions.actions):
        never = np.flatnonzero((actions.action_of == number) & ~applies)
        if len(never) == len(action.arguments):
            yield f"action '{action.name}' never applies to anyone in the data"
        elif len(never):
            listed = ", ".join(str(actions.argument(int(move))) for move in never[:5])
            more = f" and {len(never) - 5} more" if len(never) > 5 else ""
            yield f"action '{action.name}': nobody in the data can use {listed}{more}"


def _unreachable_requirements(problem: Problem, states: States) -> Iterator[str]:
    actions = problem.actions
    for number, column, requirement in actions.requirement_tables:
        start: Floats = np.unique(states[:, column])
        if actions.requirement_met(column, requirement, start).any():
            continue
        moves = np.flatnonzero(actions.feature_of == column)
        reached = actions.argument_of[moves][~actions.adds[moves]]
        adding = actions.adds[moves].any()
        if not adding and not actions.requirement_met(column, requirement, reached).any():
            yield (
                f"action '{actions.actions[number].name}' needs "
                f"{_requirement_words(requirement)}, which nobody has and no action leads to"
            )


def _below_everyone(problem: Problem, states: States) -> Iterator[str]:
    actions = problem.actions
    for number, action in enumerate(actions.actions):
        move = int(np.flatnonzero(actions.action_of == number)[0])
        column = int(actions.feature_of[move])
        falls = action.mode == "add" and any(float(amount) < 0 for amount in action.arguments)
        if falls and actions.bounds[move, 0] == -np.inf and not (states[:, column] < 0).any():
            yield (
                f"action '{action.name}' can bring '{action.feature}' below 0, where nobody is; "
                "give the feature or the action 'lower = 0'"
            )
