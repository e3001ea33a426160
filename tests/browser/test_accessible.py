"""Every page, light and dark, wide and narrow, without a violation that axe can find."""

import pytest
from tests.browser.journey import answer, begin, heading

pytest.importorskip("playwright")

RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}


def violations(page):
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page, options=RULES).response["violations"]
    return [(page.url, item["id"], [node["html"] for node in item["nodes"]]) for item in found]


@pytest.mark.parametrize(
    ("width", "scheme"), [(1200, "light"), (320, "dark")], ids=["wide-light", "narrow-dark"]
)
def test_axe_finds_nothing_on_any_page(open_page, server, width, scheme):
    page = open_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
    found = []

    def check(path=None):
        if path is not None:
            page.goto(path)
        found.extend(violations(page))

    check("/")
    check("/own")
    page.get_by_role("button", name="See the decision").click()
    check()
    begin(page)
    base = page.url.removesuffix("/now")
    check(base)
    check(base + "/now")
    page.locator("details.cannot summary").first.click()
    check()
    page.locator("details.cannot[open] button").first.click()
    check()
    answer(page, "B")
    check(base + "/question/1")
    page.goto(base + "/now")
    if heading(page) != "Your plan":
        page.get_by_role("button", name="Use the best plan so far").click()
    page.locator(".score summary").click()
    check()
    for path in ("/receipt", "/data", "/help", "/delete", "/nothing"):
        check(base + path)
    check("/lender")
    page.get_by_label("Key").fill(server.key)
    page.get_by_role("button", name="Sign in").click()
    check()
    check("/lender/new")
    check("/lender/fairness")
    begin(page, "David")
    for _ in range(14):
        if heading(page) == "We found no plan for you":
            break
        page.locator("details.cannot summary").first.click()
        page.locator("details.cannot[open] button").last.click()
        page.wait_for_load_state()
    assert heading(page) == "We found no plan for you"
    check()
    assert found == []


def test_motion_is_reduced_where_asked(open_page):
    page = open_page(reduced_motion="reduce")
    page.goto("/")
    durations = page.evaluate(
        "[...document.querySelectorAll('*')].map(e => getComputedStyle(e).transitionDuration)"
    )
    assert set(durations) == {"0s"}


def test_the_receipt_prints_without_buttons_and_menus(open_page):
    page = open_page()
    begin(page)
    page.get_by_role("button", name="Use the best plan so far").click()
    page.goto(page.url.split("?")[0].removesuffix("/now") + "/receipt")
    page.emulate_media(media="print")
    assert not page.locator("header.site").is_visible()
    assert not page.locator("button").first.is_visible()
    assert page.locator("table").is_visible()
