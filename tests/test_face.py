"""The names at the top of the package: each docstring has what its reader needs."""

import inspect
from itertools import pairwise

import pytest

import pear

NAMES = [name for name in pear.__all__ if name != "PearError"]


def sections(thing):
    """Headings of a docstring in numpydoc's form."""
    lines = (inspect.getdoc(thing) or "").splitlines()
    return {line for line, under in pairwise(lines) if line and under == "-" * len(line)}


@pytest.mark.parametrize("name", NAMES)
def test_it_says_what_it_takes_and_shows_how_it_is_used(name):
    thing = getattr(pear, name)
    told = sections(thing)
    assert {"Parameters", "Examples"} <= told
    if inspect.isfunction(thing):
        assert "Raises" in told
        gives = inspect.signature(thing).return_annotation not in (None, "None")
        assert ("Returns" in told) == gives


@pytest.mark.parametrize("name", NAMES)
def test_its_parameters_are_all_told(name):
    thing = getattr(pear, name)
    text = (inspect.getdoc(thing) or "").split("Parameters\n----------\n")[1]
    told = {
        word.strip()
        for line in text.split("\n\n")[0].splitlines()
        if line and not line.startswith(" ")
        for word in line.split(",")
    }
    taken = {
        parameter.name
        for parameter in inspect.signature(thing).parameters.values()
        if parameter.kind is not parameter.VAR_KEYWORD
    }
    assert taken <= told


@pytest.mark.parametrize("name", [name for name in NAMES if inspect.isclass(getattr(pear, name))])
def test_what_can_be_called_on_it_says_what_it_does(name):
    for attribute, value in vars(getattr(pear, name)).items():
        function = getattr(value, "__func__", value)
        if not attribute.startswith("_") and inspect.isfunction(function):
            assert inspect.getdoc(function), attribute
