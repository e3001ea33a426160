"""Every text in one catalogue: none missing, none unused, none outside it."""

import re
import tomllib
from importlib import resources
from string import Formatter

import pytest

from pear.datasets import loan_book_problem
from pear.elicitation.words import _flat, catalogue, languages
from pear.errors import InvalidSetting

FOLDER = resources.files("pear.service")
TEMPLATES = {f.name: f.read_text() for f in (FOLDER / "templates").iterdir()}
SOURCES = {f.name: f.read_text() for f in FOLDER.iterdir() if f.name.endswith(".py")}
SOURCES |= {f"lender/{f.name}": f.read_text() for f in (FOLDER / "lender").glob("*.py")}
for module in ("words", "shown"):
    SOURCES[module] = (resources.files("pear.elicitation") / f"{module}.py").read_text()
SOURCES["terminal"] = (resources.files("pear.cli") / "conversation.py").read_text()
FAMILIES = ("ask.", "plan.", "said.", "notice.", "error.", "limit.", "refusal.")
FAMILIES += ("lender.stage_", "lender.proof.", "no_plan.", "language.", "steps.", "compare.")
FAMILIES += ("reference.error_",)


def used_names():
    names = set()
    for html in TEMPLATES.values():
        names |= set(re.findall(r"""\bt(?:\.count)?\(\s*["']([\w.]+)["']""", html))
    for code in SOURCES.values():
        names |= set(re.findall(r"""texts(?:\.count)?\(\s*"([\w.]+)\"""", code))
        names |= set(re.findall(r'"(form\.\w+)"', code))
        names |= set(re.findall(r"texts\('([\w.]+)'\)", code))
        names |= set(re.findall(r"""texts(?:\.count)?\(\s*f["']([\w.]+\.)\{""", code))
    return names


def test_every_text_used_is_there():
    english = catalogue("en", "pear.service")
    for name in used_names():
        family = name.endswith((".", "_")) and any(key.startswith(name) for key in english.texts)
        assert name in english or f"{name}.one" in english or family, name


def test_every_text_there_is_used():
    used = used_names()
    families = (*FAMILIES, *(name for name in used if name.endswith(".")))
    unused = [
        name
        for name in catalogue("en", "pear.service").texts
        if name not in used
        and name.removesuffix(".one").removesuffix(".many") not in used
        and not name.startswith(families)
    ]
    assert unused == []


@pytest.mark.parametrize("name", sorted(TEMPLATES))
def test_templates_hold_no_words_of_their_own(name):
    named = r"\{% block kind %\}[\w ]*\{% endblock %\}"
    text = re.sub(
        named + r"|\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}|<[^>]*>", " ", TEMPLATES[name], flags=re.DOTALL
    )
    assert not re.search(r"[A-Za-z]{2,}", text), text.split()


def placeholders(text):
    return {name for _, name, _, _ in Formatter().parse(text) if name is not None}


def test_there_are_four_languages():
    assert set(languages("pear.service")) >= {"en", "de", "it", "es"}


@pytest.mark.parametrize("language", languages("pear.service"))
def test_every_language_has_every_text_with_the_same_placeholders(language):
    english, other = catalogue("en", "pear.service"), catalogue(language, "pear.service")
    assert set(other.texts) == set(english.texts)
    for name, text in english.texts.items():
        assert placeholders(other.texts[name]) == placeholders(text), name
        assert other.texts[name].strip(), name


@pytest.mark.parametrize("language", [name for name in languages("pear.service") if name != "en"])
def test_the_loan_book_says_everything_in_every_language(language):
    problem = loan_book_problem()
    said = problem.words[language]
    features = problem.space.features
    assert set(said.labels) == set(problem.space.names)
    assert set(said.phrases) == {action.name for action in problem.actions.actions}
    for feature in features:
        if feature.categories:
            assert set(said.categories[feature.name]) == set(feature.categories)
        if feature.unit.isalpha():
            assert feature.name in said.units


def test_no_text_stands_twice():
    own = _names(FOLDER / "texts" / "en.toml")
    shared = _names(resources.files("pear.elicitation") / "texts" / "en.toml")
    assert own & shared == set()


def _names(file):
    return {name for name, _text in _flat(tomllib.loads(file.read_text("utf-8")), "")}


def test_one_and_many():
    english = catalogue("en", "pear.service")
    assert english.count("reason.gain", 1) == "It adds 1 point."
    assert english.count("reason.gain", 2) == "It adds 2 points."


def test_a_text_or_language_that_is_not_there_is_refused_by_name():
    with pytest.raises(InvalidSetting, match=r"texts/en\.toml"):
        catalogue("en", "pear.service")("no.such")
    with pytest.raises(InvalidSetting, match="there are: de, en, es, it"):
        catalogue("xx", "pear.service")


@pytest.mark.parametrize(
    "promise", ["guarantee", "will be approved.", "you will get", "best plan for"]
)
def test_no_text_promises_more_than_we_may(promise):
    for name, text in catalogue("en", "pear.service").texts.items():
        if name != "plan.proof_more":
            assert promise not in text.lower(), name
