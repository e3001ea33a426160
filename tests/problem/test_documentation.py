"""The reference of the problem file and the code that reads it know the same keys."""

import re
from pathlib import Path

import pytest

from pear.problem.files import problem_from_toml, problem_to_toml
from pear.problem.schema import ALL_KEYS, GRID_KEYS
from pear.problem.wording import PHRASE_FIELDS

TEXT = (Path(__file__).parents[2] / "docs" / "problem-file.md").read_text(encoding="utf-8")
HEADINGS = {
    "": "The whole file",
    "goal": "goal",
    "features.NAME": "features",
    "actions.NAME": "actions",
    "costs": "costs",
    "weights": "weights",
    "archetypes": "archetypes",
    "model": "model",
    "model.inputs.NAME": "model inputs",
    "prior": "prior",
    "asked": "asked",
    "words.LANGUAGE": "words",
}


def documented(heading):
    """Keys of each table of a section, one set per table."""
    section = re.search(rf"^## {heading}\n(.*?)(?=^## |\Z)", TEXT, re.DOTALL | re.MULTILINE)
    assert section, f"no section {heading!r}"
    tables = re.findall(r"(?:^\|.*\n)+", section[1], re.MULTILINE)
    return [set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) for table in tables]


@pytest.mark.parametrize("table", HEADINGS)
def test_every_key_is_documented_and_no_other(table):
    assert documented(HEADINGS[table])[0] == set(ALL_KEYS[table])


def test_the_keys_of_requirements_are_documented_with_the_actions():
    assert documented("actions")[1] == set(ALL_KEYS["actions.NAME.requires"])
    assert set(HEADINGS) | {"actions.NAME.requires"} == set(ALL_KEYS)


def test_ranges_and_phrases_are_documented():
    for key in GRID_KEYS:
        assert f"{key} =" in TEXT
    for field in PHRASE_FIELDS:
        assert f"`{{{field}}}`" in TEXT


def test_the_example_is_a_problem_that_comes_back():
    example, inputs = re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL)
    whole = example.replace('[model]\npath = "model.onnx"\n', inputs)
    problem = problem_from_toml(whole)
    assert [entry.source for entry in problem.interface.inputs] == ["income", "job", "school"]
    assert problem_from_toml(problem_to_toml(problem)) == problem
    assert problem.archetypes[0].spread == (10,) * 6
