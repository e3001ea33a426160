"""An auditor's check: true plans are confirmed, a change of any claim is refused."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from typer.testing import CliRunner

from pear.cli.main import app
from pear.decision import BlackBox
from pear.decision.ceilings.networks import own_network
from pear.decision.encoding import unit_inputs
from pear.decision.numpy_models import Network
from pear.errors import InvalidPlan, InvalidSetting
from pear.planning.exact import ExactPlanner
from pear.planning.verify import verify
from pear.problem import NO_LIMITS, ActionSpace, Certificate, CostGraph, Limits, Plan
from pear.problem.files import write_problem
from tests.planning.exact.small_problems import cases
from tests.planning.exact.test_ties_and_batches import accepts, flags

STATE, WEIGHTS = np.zeros(4), np.array([2.0, 3.0, 4.0, 5.0, 1.5])


def made(limits=NO_LIMITS, *targets, **settings_):
    """A problem with the edge a -> b, a model, and the plan for both a and b."""
    problem = flags(edges=(("a", "b"),))
    black_box = accepts(problem, *(targets or ("ab",)))
    plan = ExactPlanner(problem, black_box, **settings_).plan(STATE, WEIGHTS, limits)
    return plan, problem, black_box


def refusals(plan, problem, black_box):
    return verify(plan, problem, black_box).refusals


def test_somebody_who_needs_no_step_is_the_cheapest_plan_there_is():
    problem = flags()
    black_box = BlackBox(lambda states: 0.6 + 0.3 * states[:, 0], problem.space, problem.goal)
    planner = ExactPlanner(problem, black_box)
    stuck = planner.plan(STATE, WEIGHTS[:4], Limits(features=("a",), margin=0.2))
    assert stuck.certificate.blocking == (("no change of a",), ("a margin of 0.2",))
    assert refusals(stuck, problem, black_box) == []
    careful = planner.plan(STATE, WEIGHTS[:4], Limits(margin=0.2))
    assert [step.feature for step in careful.steps] == ["a"]
    assert refusals(careful, problem, black_box) == []
    careless = tampered(careful, ("limits", "margin"), 0.0)
    reasons = [refusal.reason for refusal in refusals(careless, problem, black_box)]
    assert "one costs 0.0000: the decision is favourable already" in reasons


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(cases())
def test_every_plan_of_the_search_is_confirmed(case):
    planner = ExactPlanner(case.problem, case.black_box)
    plan = planner.plan(case.state, case.weights, case.limits)
    stored = Plan.from_json(plan.to_json())
    report = verify(stored, case.problem, case.black_box)
    assert report.confirmed, report.words()


@settings(max_examples=30, deadline=None)
@given(cases(samples=3, max_features=3))
def test_plans_for_samples_and_with_repeats_are_confirmed(case):
    planner = ExactPlanner(case.problem, case.black_box, max_changes_per_feature=2)
    plan = planner.plan(case.state, case.weights, case.limits)
    report = verify(Plan.from_json(plan.to_json()), case.problem, case.black_box)
    assert report.confirmed, report.words()


@settings(max_examples=30, deadline=None)
@given(cases())
def test_bounds_of_searches_that_ended_early_are_confirmed(case):
    planner = ExactPlanner(case.problem, case.black_box, max_rows=8, first_batch=2)
    plan = planner.plan(case.state, case.weights, case.limits)
    report = verify(Plan.from_json(plan.to_json()), case.problem, case.black_box)
    assert [finding for finding in report.findings if not finding.confirmed] == [], report.words()
    # With so few rows not all limits that block are found.
    assert report.confirmed or plan.certificate.verdict == "infeasible", report.words()


def test_the_report_says_what_is_claimed_and_what_was_confirmed():
    plan, problem, black_box = made()
    report = verify(plan, problem, black_box)
    words = report.words()
    assert "confirmed  step 1: it changes 'b' from 0.0 to 1.0" in words
    assert "confirmed  no plan with at most 4 changes costs less than" in words
    assert "not checked  rows, seconds and reproducibility" in words
    assert words.endswith("Confirmed: what the plan claims is true.")


TAMPERED = {
    ("start", "c"): 1.0,
    ("start", "d"): "zero",
    ("cost",): 1.0,
    ("score",): 0.7,
    ("success",): False,
    ("moves",): [0, 1],
    ("on_grid",): False,
    ("method",): "FACE",
    ("problem_fingerprint",): "0123456789abcdef",
    ("model_fingerprint",): "",
    ("weights",): [],
    ("weights", 0, 0): 9.0,
    ("limits", "features"): ["a"],
    ("limits", "actions"): ["on_b"],
    ("limits", "values"): [["b", 1.0]],
    ("limits", "max_steps"): 1,
    ("limits", "margin"): 0.45,
    ("certificate", "verdict"): "infeasible",
    ("certificate", "lower_bound"): 1.0,
    ("certificate", "upper_bound"): None,
    ("certificate", "max_length"): 1,
    ("certificate", "max_changes_per_feature"): 0,
    ("certificate", "rows"): -1,
    ("certificate", "seconds"): -0.5,
    ("certificate", "blocking"): [["no change of a"]],
    ("certificate", "looked_into"): "a crystal ball",
}
TAMPERED_STEP = {
    "action": "on_c",
    "argument": 2.0,
    "feature": "c",
    "before": 1.0,
    "after": 0.5,
    "cost": 0.5,
    "score_before": 0.3,
    "score_after": 0.2,
    "words": "Do nothing",
    "weeks": 2.0,
    "once": 10.0,
    "monthly": 1.0,
}


def tampered(plan, path, value):
    data = json.loads(plan.to_json())
    place = data
    for key in path[:-1]:
        place = place[key]
    assert place[path[-1]] != value
    place[path[-1]] = value
    return Plan.from_dict(data)


@pytest.mark.parametrize("path", TAMPERED, ids=str)
def test_a_change_of_any_claim_is_refused(path):
    plan, problem, black_box = made()
    assert refusals(plan, problem, black_box) == []
    assert refusals(tampered(plan, path, TAMPERED[path]), problem, black_box)


@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize("name", TAMPERED_STEP)
def test_a_change_of_any_step_is_refused_naming_the_step(name, step):
    plan, problem, black_box = made()
    changed = tampered(plan, ("steps", step - 1, name), TAMPERED_STEP[name])
    first = refusals(changed, problem, black_box)[0]
    assert first.step == step


MISTYPED = {
    ("certificate", "max_length"): 2.5,
    ("certificate", "max_changes_per_feature"): 1.5,
    ("certificate", "lower_bound"): float("nan"),
    ("certificate", "reproducible"): "yes",
    ("certificate", "looked_into"): 3,
    ("certificate", "rows"): 1.5,
    ("on_grid",): "x",
    ("steps", 0, "reason"): 12345,
}


@pytest.mark.parametrize("path", MISTYPED, ids=str)
def test_a_field_of_the_wrong_kind_is_refused_by_name(path):
    plan, *_ = made()
    with pytest.raises(InvalidPlan, match=str(path[-1])):
        tampered(plan, path, MISTYPED[path])


@pytest.mark.parametrize("bound", [None, float("nan"), "low"])
def test_a_bounded_plan_without_a_bound_is_refused(bound):
    plan, problem, black_box = made()
    data = json.loads(plan.to_json())
    data["certificate"] |= {"verdict": "bounded", "lower_bound": bound}
    with pytest.raises(InvalidPlan, match="'lower_bound' of a bounded plan must be a number"):
        Plan.from_dict(data)
    loose = replace(plan.certificate, verdict="bounded", lower_bound=bound and math.nan)
    assert refusals(plan.with_certificate(loose), problem, black_box)


def test_limits_that_name_nothing_of_the_problem_are_refused():
    plan, problem, black_box = made()
    for key, names in (("features", ["nope"]), ("actions", ["fly"]), ("values", [["nope", 1.0]])):
        odd = tampered(plan, ("limits", key), names)
        assert "it has no '" in refusals(odd, problem, black_box)[0].reason


@pytest.mark.parametrize("most", ["many", 0, -5, 2.5, True])
def test_a_number_of_states_that_is_none_is_refused(most):
    plan, problem, black_box = made()
    with pytest.raises(InvalidSetting, match="'max_rows' must be a whole number"):
        verify(plan, problem, black_box, max_rows=most)


def test_every_field_is_tampered_with_or_named_as_not_checkable():
    plan, *_ = made()
    data = plan.to_dict()
    changed = {path[0] for path in TAMPERED}
    assert set(data) == changed | {"steps"}
    of_certificate = {path[1] for path in TAMPERED if path[0] == "certificate"}
    assert set(data["certificate"]) == of_certificate | {"reproducible"}
    assert {path[1] for path in TAMPERED if path[0] == "limits"} == set(data["limits"])
    assert set(data["steps"][0]) == set(TAMPERED_STEP) | {"reason"}


def test_steps_left_out_put_in_or_exchanged_are_refused():
    plan, problem, black_box = made()
    data = json.loads(plan.to_json())
    for steps, moves in (
        (data["steps"][:1], data["moves"][:1]),
        (data["steps"] + data["steps"][:1], data["moves"] + data["moves"][:1]),
        (data["steps"][::-1], data["moves"][::-1]),
    ):
        assert refusals(
            Plan.from_dict({**data, "steps": steps, "moves": moves}), problem, black_box
        )


def test_a_dearer_plan_passed_off_as_the_cheapest_is_refused_with_the_cheaper_one():
    plan, problem, _ = made(NO_LIMITS, "cd")
    rival = accepts(problem, "cd", "a")
    rival._fingerprint = plan.model_fingerprint
    [refusal] = refusals(plan, problem, rival)
    assert "no plan with at most 4 changes costs less" in refusal.claim
    assert refusal.reason == "one costs 2.0000: on_a 1.0"


def test_infeasible_and_its_blocking_limits_are_confirmed_or_refused():
    limits = Limits(features=("a",), max_steps=3)
    plan, problem, black_box = made(limits)
    assert plan.certificate.blocking == (("no change of a",),)
    assert refusals(plan, problem, black_box) == []
    other = tampered(plan, ("certificate", "blocking"), [["at most 3 steps"]])
    assert "the limits that block" in refusals(other, problem, black_box)[0].claim
    unnamed = tampered(plan, ("certificate", "blocking"), [])
    report = verify(unnamed, problem, black_box)
    assert [finding for finding in report.findings if not finding.confirmed] == []
    assert "whether named or not: [('no change of a',)]" in report.unproven[0]
    lifted = tampered(plan, ("limits", "features"), [])
    assert "no plan with at most 3 changes is favourable" in [
        refusal.claim for refusal in refusals(lifted, problem, black_box)
    ]


def test_a_lower_bound_beyond_what_can_be_proven_is_refused():
    plan, problem, black_box = made(max_rows=8, first_batch=1)
    assert plan.certificate.verdict == "unknown"
    data = json.loads(plan.to_json())
    data["certificate"]["lower_bound"] = 1e6
    assert "costs less than 1000000" in refusals(Plan.from_dict(data), problem, black_box)[0].claim


def test_what_is_too_much_to_list_is_called_not_proven():
    plan, problem, black_box = made()
    report = verify(plan, problem, black_box, max_rows=5)
    assert not report.refusals
    assert not report.confirmed
    assert "holds for plans of up to 1 changes" in report.unproven[0]
    assert report.words().endswith("Not refused, and not all of it proven again.")


def test_random_plans_are_held_against_what_was_not_proven():
    plan, problem, _ = made(NO_LIMITS, "cd")
    rival = accepts(problem, "cd", "a")
    rival._fingerprint = plan.model_fingerprint
    report = verify(plan, problem, rival, max_rows=2)
    assert "drawn at random" in report.refusals[0].claim


@pytest.mark.slow
def test_ceilings_that_rule_out_what_the_model_accepts_are_refused():
    problem = flags()
    first, last = np.ones((4, 1)), np.array([-1.5])
    black_box = BlackBox(
        Network(unit_inputs(problem.space), ((first, last),)), problem.space, problem.goal
    )
    plan = ExactPlanner(problem, black_box).plan(STATE, WEIGHTS[:4])
    assert verify(plan, problem, black_box).confirmed
    wrong = Network(unit_inputs(problem.space), ((first, last - 2),))
    black_box.__dict__["inside"] = replace(black_box.inside, model=own_network(wrong).model)
    [refusal] = refusals(plan, problem, black_box)
    assert refusal.claim.startswith("what was read from the model")


def test_a_heuristic_plan_is_confirmed_without_a_proof():
    plan, problem, black_box = made()
    claimed = plan.with_certificate(Certificate("heuristic"))
    report = verify(claimed, problem, black_box)
    assert report.confirmed
    assert any("whether a cheaper plan exists" in what for what in report.unchecked)


def test_the_command_confirms_a_plan_and_refuses_it_tampered_with(tmp_path, monkeypatch):
    plan, problem, black_box = made()
    write_problem(problem, tmp_path / "problem.toml")
    monkeypatch.setattr(
        "pear.decision.adapters.loading.load_model", lambda place, stated, **_: black_box
    )
    arguments = ["--problem", str(tmp_path / "problem.toml"), "--model", "model.onnx"]
    good = tmp_path / "plan.json"
    good.write_text(plan.to_json())
    result = CliRunner().invoke(app, ["verify", str(good), *arguments])
    assert result.exit_code == 0, result.output
    assert "claims:" in result.output
    assert "1. Increase your b from 0 to 1" in result.output
    assert "Confirmed: what the plan claims is true." in result.output
    bad = tmp_path / "bad.json"
    bad.write_text(tampered(plan, ("steps", 1, "cost"), 0.5).to_json())
    result = CliRunner().invoke(app, ["verify", str(bad), *arguments])
    assert result.exit_code == 1
    assert "Refused: step 2, it costs 0.5000" in result.output
    bad.write_text(plan.to_json().replace('"optimal"', '"certain"'))
    result = CliRunner().invoke(app, ["verify", str(bad), *arguments])
    assert result.exit_code == 1
    assert "Refused: 'verdict' must be one of" in result.output


def test_the_prover_shares_nothing_with_the_searches_nor_with_their_arrays():
    import ast
    from pathlib import Path

    import pear.planning.prover as prover
    import pear.planning.verify as verify

    arrays = {
        name
        for part in (ActionSpace, CostGraph)
        for name in vars(part)
        if not name.startswith("_") and name not in part.__dataclass_fields__
    }
    # Names that declarations have as well.
    arrays -= {"weight_names", "features", "costs", "from_missing", "argument"}
    for module in (prover, verify):
        tree = ast.parse(Path(module.__file__).read_text())
        imported = {
            f"{node.module}.{alias.name}" if isinstance(node, ast.ImportFrom) else alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in node.names
        }
        ours = {name for name in imported if name.startswith("pear.")}
        assert not {name for name in ours if name.startswith("pear.planning.exact")}
        assert not {name for name in ours if name.startswith("pear.problem.costs")}
        assert not ours & {"pear.problem.ActionSpace", "pear.problem.CostGraph"}
        used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        assert not used & arrays
