"""Every text in one catalogue: none missing, none unused, none outside it."""

import re
from importlib import resources
from string import Formatter

import pytest

from pear.errors import InvalidSetting
from pear.service.words import catalogue, languages

FOLDER = resources.files("pear.service")
TEMPLATES = {f.name: f.read_text() for f in (FOLDER / "templates").iterdir()}
SOURCES = {f.name: f.read_text() for f in FOLDER.iterdir() if f.name.endswith(".py")}
for module in ("words", "told"):
    SOURCES[module] = (resources.files("pear.elicitation") / f"{module}.py").read_text()
SOURCES["terminal"] = (resources.files("pear.cli") / "conversation.py").read_text()
FAMILIES = (
    "ask.",
    "plan.",
    "said.",
    "notice.",
    "error.",
    "limit.",
    "refusal.",
    "confidence.",
    "difference.",
)
FAMILIES += ("lender.stage_", "no_plan.", "start.", "language.", "steps.", "compare.")


def used_names():
    names = set()
    for html in TEMPLATES.values():
        names |= set(re.findall(r"""\bt(?:\.count)?\(\s*["']([\w.]+)["']""", html))
    for code in SOURCES.values():
        names |= set(re.findall(r"""texts(?:\.count)?\(\s*"([\w.]+)\"""", code))
        names |= set(re.findall(r'"((?:form|difference)\.\w+)"', code))
        names |= set(re.findall(r"texts\('([\w.]+)'\)", code))
        names |= set(re.findall(r"""texts(?:\.count)?\(\s*f["']([\w.]+\.)\{""", code))
    return names


def test_every_text_used_is_there():
    english = catalogue("en")
    for name in used_names():
        family = name.endswith((".", "_")) and any(key.startswith(name) for key in english.texts)
        assert name in english or f"{name}.one" in english or family, name


def test_every_text_there_is_used():
    used = used_names()
    families = (*FAMILIES, *(name for name in used if name.endswith(".")))
    unused = [
        name
        for name in catalogue("en").texts
        if name not in used
        and name.removesuffix(".one").removesuffix(".many") not in used
        and not name.startswith(families)
    ]
    assert unused == []


@pytest.mark.parametrize("name", sorted(TEMPLATES))
def test_templates_hold_no_words_of_their_own(name):
    named = r"\{% block kind %\}\w*\{% endblock %\}"
    text = re.sub(named + r"|\{%.*?%\}|\{\{.*?\}\}|<[^>]*>", " ", TEMPLATES[name], flags=re.DOTALL)
    assert not re.search(r"[A-Za-z]{2,}", text), text.split()


def test_every_language_has_every_text_with_the_same_placeholders():
    english = catalogue("en")
    for language in languages():
        other = catalogue(language)
        assert set(other.texts) == set(english.texts)
        for name, text in english.texts.items():
            fields = {field for _, field, _, _ in Formatter().parse(text)}
            assert {field for _, field, _, _ in Formatter().parse(other.texts[name])} == fields


def test_one_and_many():
    english = catalogue("en")
    assert english.count("reason.gain", 1) == "It adds 1 point."
    assert english.count("reason.gain", 2) == "It adds 2 points."


def test_a_text_or_language_that_is_not_there_is_refused_by_name():
    with pytest.raises(InvalidSetting, match=r"texts/en\.toml"):
        catalogue("en")("no.such")
    with pytest.raises(InvalidSetting, match="there are: en"):
        catalogue("xx")


@pytest.mark.parametrize(
    "promise", ["guarantee", "will be approved.", "you will get", "best plan for"]
)
def test_no_text_promises_more_than_we_may(promise):
    for name, text in catalogue("en").texts.items():
        if name != "plan.proof_more":
            assert promise not in text.lower(), name
