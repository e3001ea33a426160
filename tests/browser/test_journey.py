"""The whole way from the refusal to the last step done, in a real browser, in each language."""

import json
import re
import sqlite3

import pytest
from tests.browser.journey import Person, held

from pear.elicitation.words import languages
from pear.problem import Plan
from pear.service.store.database import hashed

playwright = pytest.importorskip("playwright.sync_api")

PHONE = {"viewport": {"width": 320, "height": 640}, "has_touch": True, "color_scheme": "dark"}
DESKTOP = {"viewport": {"width": 1280, "height": 900}}


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no-scripts"])
@pytest.mark.parametrize("screen", [PHONE, DESKTOP], ids=["phone", "desktop"])
@pytest.mark.parametrize("language", languages("pear.service"))
def test_from_refusal_to_the_last_step_done_and_back(open_page, inspect, language, screen, scripts):
    page = open_page(**screen, locale=language, java_script_enabled=scripts)
    person = Person(page, language, inspect)
    person.begin()
    assert page.locator("html").get_attribute("lang") == language
    assert person.heading == person("question.title")
    first = person.cells()
    person.back()
    assert person.heading == person("start.title")
    page.go_forward()
    assert person.cells() == first

    person.choose("B")
    person.back()
    assert person.heading == person("previous.title", number=1), "Back shows the previous question"
    assert page.get_by_text(person("previous.chosen", letter="B")).is_visible()
    person.press("previous.keep")
    person.press("question.undo")
    assert person.cells() == first, "undo asks the same question again"

    person.press("question.none")
    assert person.heading == person("none.title")
    person.back()
    assert person.cells() == first
    page.go_forward()
    page.locator(".hard summary").first.click()
    page.locator(".hard li").first.locator("button").last.click()
    person.arrive()
    assert page.get_by_role("status").filter(has_text=person("said.limit")).is_visible()
    page.locator(".limits button").click()
    person.arrive()
    assert person.cells() == first, "what was refused can be proposed again"

    person.press("question.best")
    assert person.heading == person("plan.title")
    steps = person.steps()
    person.do_next_step()
    assert page.locator(".timeline .done").count() == 1
    person.press("plan.unmark")
    assert person.steps() == steps, "what was not done after all is to do again"
    for path in ("/receipt", "/data", "/help", "/delete"):
        person.go(person.base + path)
        person.back()
        assert person.heading == person("plan.title")
    for _ in range(8):
        if person.heading == person("success.title"):
            break
        person.do_next_step()
    assert person.heading == person("success.title")
    assert page.locator(".timeline .todo").count() == 0
    person.press("plan.unmark")
    assert person.heading == person("plan.title")

    person.press("plan.changed")
    income = page.locator("#field-monthly_income")
    income.fill("???")
    person.press("data.submit")
    assert page.get_by_role("alert").get_by_role("link").count() == 1
    income.fill("€ 2,100.00" if language == "en" else "2.100,00 €")
    person.press("data.submit")
    assert page.get_by_role("status").filter(has_text=person("said.updated")).is_visible()
    person.go(person.base)
    shown = "€2,100" if language == "en" else "2.100\N{NO-BREAK SPACE}€"
    assert page.get_by_text(shown, exact=True).is_visible()

    person.go(person.base + "/delete")
    person.press("delete.confirm")
    assert person.heading == person("delete.done_title")


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no-scripts"])
def test_what_was_opened_can_be_left_without_changes(open_page, inspect, scripts):
    page = open_page(**PHONE, java_script_enabled=scripts)
    person = Person(page, check=inspect).begin()
    first = person.cells()
    person.open("question.too_much")
    if scripts:
        opened = page.locator("details.cannot[open] .leave")
        playwright.expect(opened).to_be_in_viewport(ratio=1)  # what opens is seen whole
    inspect(page)
    page.locator("details.cannot[open] .leave").click()
    person.arrive()
    assert page.locator("details.cannot[open]").count() == 0
    assert person.cells() == first
    person.press("question.best")
    steps = person.steps()
    person.open("plan.mark")
    page.locator("details.cannot[open] .leave").click()
    person.arrive()
    assert page.locator("details.cannot[open]").count() == 0
    assert person.steps() == steps


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no-scripts"])
def test_no_plan_leads_to_a_person_first_and_back(open_page, inspect, scripts):
    page = open_page(**PHONE, java_script_enabled=scripts)
    person = Person(page, check=inspect).begin("David")
    person.until_no_plan()
    first = page.locator("main a.button, main button").first
    assert first.inner_text() == person("no_plan.human")
    suggestions = page.locator(".suggestion")
    assert 1 <= suggestions.count() <= 2
    suggestions.first.get_by_role("button").click()
    page.wait_for_load_state()
    assert person.heading != person("no_plan.title")


def test_the_receipt_is_a_plan_that_can_be_read_again(open_page):
    page = open_page(**DESKTOP)
    person = Person(page).begin()
    person.finish()
    person.press("plan.receipt")
    with page.expect_download() as downloaded:
        page.get_by_role("link", name=person("plan.receipt_json")).click()
    plan = Plan.from_dict(json.loads(downloaded.value.path().read_text()))
    assert plan.success
    person.press("receipt.back")
    assert [step.words for step in plan.steps] == person.steps()


def test_both_plans_and_their_buttons_are_on_the_first_screen_of_a_phone(open_page):
    page = open_page(viewport={"width": 375, "height": 667})
    person = Person(page).begin()
    for letter in "AB":
        name = page.get_by_role("columnheader", name=person("compare.plan", letter=letter))
        button = page.get_by_role("button", name=person("question.choose", letter=letter))
        for part in (name, button):
            box = part.bounding_box()
            assert box["y"] + box["height"] <= 667
    page.evaluate("window.scrollTo(0, 150)")
    assert page.evaluate("window.scrollY") > 100
    box = page.get_by_role("columnheader", name=person("compare.plan", letter="A")).bounding_box()
    assert box["y"] >= 0, "the header of each plan stays in view"


def test_the_comparison_is_a_table_for_who_listens(open_page):
    page = open_page(viewport={"width": 375, "height": 667})
    person = Person(page).begin()
    table = page.get_by_role("table", name=person("question.table"))
    assert table.get_by_role("columnheader").count() == 2
    rows = table.locator("tbody").get_by_role("row")
    assert rows.count() >= 1
    for row in rows.all():
        assert row.get_by_role("rowheader").count() == 1
        assert row.get_by_role("cell").count() == 2


def focused(page):
    text = page.evaluate("document.activeElement.textContent")
    return text.strip().replace("\N{NO-BREAK SPACE}", " ")


def press_until(page, text, most=80):
    for _ in range(most):
        page.keyboard.press("Tab")
        if focused(page).startswith(text):
            return
    raise AssertionError(f"{text!r} cannot be reached with the Tab key")


def test_by_keyboard_only(open_page):
    page = open_page(viewport={"width": 1000, "height": 800})
    person = Person(page)
    page.goto("/")
    page.keyboard.press("Tab")
    assert focused(page) == person("site.skip")
    page.keyboard.press("Enter")
    press_until(page, person("welcome.person", name="Amina"))
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/c/[\w-]+$"))
    press_until(page, person("start.begin"))
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("/question/1"))
    press_until(page, person("question.too_much"))
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert "I can’t" in focused(page), "the grades open right after the question"
    page.keyboard.press("Escape")
    assert focused(page).startswith(person("question.too_much")), "Escape closes and returns"
    for number in range(1, 11):
        if person.heading == person("plan.title"):
            break
        press_until(page, person("question.choose", letter="A"))
        page.keyboard.press("Space")
        page.wait_for_url(lambda url, n=number: not url.endswith(f"/question/{n}"))
    assert person.heading == person("plan.title")
    press_until(page, person("plan.mark"))
    page.keyboard.press("Enter")
    press_until(page, person("plan.mark_yes"), most=1)


def test_own_data_are_checked_as_they_are_typed(open_page):
    page = open_page()
    person = Person(page)
    page.goto("/own")
    age = page.get_by_label("Age", exact=True)
    age.fill("7")
    age.blur()
    assert "From 18 to 75" in page.locator("#error-age").inner_text()
    assert age.get_attribute("aria-invalid") == "true"
    age.fill("44")
    assert not page.locator("#error-age").is_visible()
    income = page.get_by_label("Net monthly income")
    for doubtful in ("40%", "1.900", "€ 1.900,00"):
        income.fill(doubtful)
        income.blur()
        assert page.locator("#error-monthly_income").is_visible(), doubtful
    income.fill("€1,900")
    page.get_by_label("Card balance (share of its limit)").fill("40%")
    page.get_by_role("button", name=person("own.submit")).click()
    assert page.url.endswith("/own"), "nothing is sent while something is missing"
    summary = page.get_by_role("alert")
    assert summary.evaluate("e => e === document.activeElement"), "the summary is read out"
    listed = summary.get_by_role("link").all_inner_texts()
    assert any(item.startswith("Sex:") for item in listed)
    assert not any(item.startswith(("Age", "Net monthly", "Card")) for item in listed)
    summary.get_by_role("link").first.click()
    assert page.evaluate("document.activeElement.name") == "sex"


def test_a_double_click_answers_once(open_page):
    page = open_page()
    person = Person(page).begin("Elif")
    button = page.get_by_role("button", name=person("question.choose", letter="A"))
    button.dblclick()
    page.wait_for_url(re.compile("/question/2"))


def test_a_visitor_changes_the_language_and_stays(open_page):
    page = open_page(**PHONE)
    person = Person(page).begin()
    page.get_by_role("link", name="Italiano").click()
    italian = Person(page, "it")
    assert italian.heading == italian("question.title")
    assert person.base == italian.base


def test_three_plans_and_long_words_fit_after_a_wait_in_the_queue(open_page, inspect, three_plans):
    page = open_page(viewport={"width": 320, "height": 800})
    person = Person(page, check=inspect)
    for name in ("Amina", "Ben", "Carla", "David"):
        page.goto(three_plans.address + "/")
        person.press("welcome.person", name=name)
        page.route("**/now", held)
        page.get_by_role("link", name=person("start.begin")).click()
        assert person.heading == person("waiting.title")
        inspect(page)
        page.unroute("**/now")
        page.reload()
        person.arrive()
        if page.locator(".plan-name").count() == 3:
            break
    assert page.get_by_role("columnheader").count() == 3
    page.evaluate(
        "document.querySelectorAll('.todo th, .todo .value')"
        ".forEach(e => e.textContent = 'Donaudampfschifffahrtsgesellschaftskapitän')"
    )
    for width in (320, 820):
        page.set_viewport_size({"width": width, "height": 800})
        inspect(page)
    page.set_viewport_size({"width": 320, "height": 800})
    for path, words in (("", ".facts dt"), ("/none", ".hard h2"), ("/data", ".field label")):
        person.go(person.base + path)
        page.evaluate(
            "words => document.querySelectorAll(words)"
            ".forEach(e => e.textContent = 'Rindfleischetikettierungsüberwachungsgesetz')",
            words,
        )
        inspect(page)


def test_an_ended_link_says_what_to_do(open_page, inspect, database):
    page = open_page(**PHONE)
    person = Person(page, check=inspect).begin("Ben")
    person.go(person.base + "/help")
    reference = re.search("reference: (.*)", page.locator("main").inner_text())[1]
    person.go(person.base + "/now")
    with sqlite3.connect(database, timeout=30) as connection:
        ended = "update conversations set expires_at = 1 where token_hash = ?"
        token = hashed(person.base.rpartition("/")[2])
        assert connection.execute(ended, (token,)).rowcount == 1
    person.go(person.base + "/now")
    assert person.heading == person("error.title_410")
    assert page.get_by_text(person("error.text_410")).is_visible()
    assert reference in page.locator("main").inner_text(), "the lender finds the case by it"


# The lender


def test_the_lender_makes_a_link_follows_the_case_and_deletes_it(open_page, inspect, server):
    page = open_page(**PHONE)
    lender = Person(page, check=inspect)
    lender.go("/lender")
    page.get_by_label("Key", exact=True).fill("wrong")
    lender.press("lender.sign_in")
    assert "not valid" in page.get_by_role("alert").inner_text()
    page.get_by_label("Key", exact=True).fill(server.key)
    lender.press("lender.sign_in")
    lender.press("lender.new")
    page.get_by_label("Reference (optional)").fill("Case 77")
    customer = "Time as the lender's customer"
    for name, value in {"Age": "50", "Children at home": "1", customer: "4"}.items():
        page.get_by_label(name, exact=True).fill(value)
    for name, value in {
        "Sex": "female", "Education": "school diploma", "Occupation": "manual work",
        "Work contract": "temporary", "Guarantor": "no",
    }.items():  # fmt: skip
        page.get_by_label(name, exact=True).select_option(value)
    for name, value in {
        "Net monthly income": "€1,850", "Savings": "900", "Monthly payments on other debts": "210",
        "Card balance (share of its limit)": "55%", "Overdue bills": "1", "Loan amount": "8,000",
        "Loan term": "36",
    }.items():  # fmt: skip
        page.get_by_label(name, exact=True).fill(value)
    lender.press("lender.make.submit")
    link = page.locator("#link").input_value()
    person = Person(open_page())
    person.go(link)
    assert person.heading == person("start.title")
    lender.go("/lender?reference=case+77")
    assert page.locator(".cases tbody tr").count() == 1
    assert lender("lender.stage_new") in page.locator(".cases").inner_text()
    person.press("start.begin")
    person.choose("A")
    person.press("question.best")
    page.get_by_role("link", name="Case 77").click()
    assert lender("lender.stage_plan") in page.locator("h1").inner_text()
    assert page.get_by_text(lender("lender.case.answer_plan", letter="A")).is_visible()
    assert page.locator(".timeline .todo").count() >= 1
    lender.press("lender.case.link_new")
    again = page.locator("#link").input_value()
    person.go(link)
    assert person.heading == person("error.title_404")
    person.go(again)
    assert person.heading == person("start.title")
    person.press("start.continue")
    person.do_next_step()
    lender.go("/lender/fairness")
    lender.go("/lender?reference=Case+77")
    assert "Steps done: 1 of" in page.locator(".cases .progress").inner_text()
    page.get_by_role("link", name="Case 77").click()
    lender.press("lender.case.delete")
    assert lender.heading == lender("lender.delete.title")
    lender.press("lender.delete.confirm")
    lender.go("/lender?reference=Case+77")
    assert page.get_by_text(lender("lender.none_found")).is_visible()
