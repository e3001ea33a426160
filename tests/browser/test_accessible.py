"""Every page, light and dark, wide and narrow, without a violation that axe can find."""

import pytest
from tests.browser.journey import Person
from tests.portfolio.small_problem import PROBLEM
from tests.portfolio.test_audit import portfolio

from pear.portfolio.audit import audit
from pear.portfolio.audit import page as audit_page

pytest.importorskip("playwright")


@pytest.mark.parametrize(
    ("width", "scheme"), [(1200, "light"), (320, "dark")], ids=["wide-light", "narrow-dark"]
)
def test_nothing_is_wrong_with_the_pages_that_no_journey_comes_to(
    open_page, inspect, server, tmp_path, width, scheme
):
    """With everything that can be opened open; the journeys look at all other pages."""
    page = open_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
    person = Person(page, check=inspect)
    for path in ("/own", "/nothing", "/api"):
        person.go(path)
    page.locator("details.route summary").nth(2).click()
    inspect(page)
    person.begin()
    page.locator("details.cannot summary").first.click()
    inspect(page)
    person.press("question.best")
    for name in ("plan.why", "plan.proof_title", "plan.mark"):
        person.open(name)
    inspect(page)
    person.go("/lender")
    page.locator("#key").fill(server.key)
    person.press("lender.sign_in")
    page.locator(".cases a").first.click()
    inspect(page)
    person.press("lender.case.link_new")
    for path in ("/lender/new", "/lender/fairness"):
        person.go(path)
    report = tmp_path / "audit.html"
    report.write_text(audit_page(audit(PROBLEM, portfolio(300, dearer=1.5, rarer=0.2))))
    person.go(report.as_uri())
    page.evaluate("document.querySelectorAll('details').forEach(e => { e.open = true; })")
    inspect(page)
    assert len(inspect.seen) >= 10


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
