"""Every page, light and dark, wide and narrow, without a violation that axe can find."""

import pytest
from tests.browser.journey import Person

pytest.importorskip("playwright")

RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}


@pytest.mark.parametrize(
    ("width", "scheme", "language"),
    [(1200, "light", "en"), (320, "dark", "de")],
    ids=["wide-light", "narrow-dark"],
)
def test_axe_finds_nothing_on_any_page(open_page, server, width, scheme, language):
    from axe_playwright_python.sync_playwright import Axe

    axe, found, seen = Axe(), [], set()

    def check(page):
        page.wait_for_load_state()
        kind = (page.locator("h1").inner_text(), page.locator("details[open]").count())
        if kind in seen:
            return
        seen.add(kind)
        for item in axe.run(page, options=RULES).response["violations"]:
            found.append((page.url, item["id"], [node["html"] for node in item["nodes"]]))

    page = open_page(viewport={"width": width, "height": 800}, color_scheme=scheme, locale=language)
    person = Person(page, language, check)
    person.go("/own")
    person.press("own.submit")
    person.begin()
    base = person.base
    page.locator("details.cannot summary").first.click()
    check(page)
    person.go(base + "/none")
    person.go(base + "/now")
    person.choose("B")
    person.go(base + "/question/1")
    person.press("previous.keep")
    person.cannot("first")
    person.press("question.best")
    for name in ("plan.why", "plan.proof_title", "plan.mark"):
        person.open(name)
    check(page)
    for path in ("/receipt", "/data", "/help", "/delete", "/nothing"):
        person.go(base + path)
    person.go(base + "/now")
    while person.heading != person("success.title"):
        person.do_next_step()
    person.begin("David").until_no_plan()
    person.go("/api")
    page.locator("details.route summary").nth(2).click()
    check(page)
    person.go("/lender")
    page.locator("#key").fill(server.key)
    person.press("lender.sign_in")
    page.locator(".cases a").last.click()
    check(page)
    person.press("lender.case.link_new")
    for path in ("/lender/new", "/lender/fairness"):
        person.go(path)
    assert found == []
    assert len(seen) >= 20


def test_motion_is_reduced_where_asked(open_page):
    page = open_page(reduced_motion="reduce")
    page.goto("/")
    durations = page.evaluate(
        "[...document.querySelectorAll('*')].map(e => getComputedStyle(e).transitionDuration)"
    )
    assert set(durations) == {"0s"}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_receipt_prints_dark_on_white_without_buttons_and_menus(open_page, scheme):
    page = open_page(color_scheme=scheme)
    person = Person(page).begin()
    person.press("question.best")
    person.press("plan.receipt")
    page.emulate_media(media="print", color_scheme=scheme)
    assert not page.locator("header.site").is_visible()
    assert not page.locator("button").first.is_visible()
    assert page.locator("table").is_visible()
    colours = page.evaluate(
        "[document.body, document.querySelector('td')].map(e => getComputedStyle(e))"
        ".map(s => [s.color, s.backgroundColor])"
    )
    assert colours[0] == ["rgb(0, 0, 0)", "rgb(255, 255, 255)"]
    assert colours[1][0] == "rgb(0, 0, 0)"
