"""The whole way from the refusal to the plan, in a real browser against the real process."""

import json
import re

import pytest
from tests.browser.journey import answer, begin, finish, heading, words

from pear.problem import Plan

pytest.importorskip("playwright")


def test_by_mouse_from_refusal_to_receipt(open_page):
    page = open_page(viewport={"width": 1200, "height": 900})
    begin(page)
    assert heading(page) == "Which would you rather do?"
    first = words(page)
    answer(page)
    assert words(page) != first
    page.get_by_role("button", name="Take back my last answer").click()
    assert words(page) == first, "undo shows the same question again"
    answer(page)
    page.get_by_role("link", name="Back to the previous question").click()
    assert heading(page) == "Your answer to question 1"
    assert page.get_by_text("You chose this plan.").is_visible()
    page.get_by_role("link", name="Keep my answer and go on").click()
    finish(page)
    assert page.get_by_role("img", name=re.compile("Bar chart of the model’s score")).is_visible()
    with page.expect_download() as downloaded:
        page.get_by_role("link", name="Download the receipt (JSON)").click()
    plan = Plan.from_dict(json.loads(downloaded.value.path().read_text()))
    assert plan.success
    shown = page.locator(".plan .words").all_inner_texts()
    assert [step.words for step in plan.steps] == shown
    page.get_by_role("link", name="Print or save your plan").click()
    assert heading(page) == "Your plan, to keep"
    assert page.get_by_text(plan.model_fingerprint).is_visible()
    page.get_by_role("link", name="Back to your plan").click()
    page.get_by_role("button", name=re.compile("I have done this step")).click()
    assert page.get_by_role("status").filter(has_text="checked the rest").is_visible()


def test_by_keyboard_only(open_page):
    page = open_page(viewport={"width": 1000, "height": 800})
    page.goto("/")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")
    press_until(page, "Continue as Amina")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/c/[\w-]+$"))
    press_until(page, "Begin")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("/now"))
    press_until(page, "I can’t do this step")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert "I can’t" in focused(page), "the reasons open right after the question"
    page.keyboard.press("Escape")
    assert focused(page).startswith("I can’t do this step"), "Escape closes and returns"
    for _ in range(10):
        if heading(page) == "Your plan":
            break
        number = page.locator(".step-of").inner_text()
        press_until(page, "I’d rather do plan A")
        page.keyboard.press("Space")
        page.wait_for_function(
            "n => document.querySelector('.step-of')?.innerText !== n", arg=number
        )
    assert heading(page) == "Your plan"
    outline = page.evaluate(
        "() => { document.querySelector('main a').focus();"
        " return getComputedStyle(document.activeElement).outlineStyle }"
    )
    assert outline != "none" or page.locator(":focus-visible").count()


def focused(page):
    return page.evaluate("document.activeElement.textContent").strip()


def press_until(page, text, most=80):
    for _ in range(most):
        page.keyboard.press("Tab")
        if focused(page).startswith(text):
            return
    raise AssertionError(f"{text!r} cannot be reached with the Tab key")


def test_without_scripts(open_page):
    page = open_page(java_script_enabled=False, viewport={"width": 390, "height": 800})
    begin(page, "Ben")
    page.locator("details.cannot summary").first.click()
    page.locator("details.cannot button").first.click()
    assert page.get_by_text("What you told us you can’t do", exact=True).is_visible()
    page.get_by_role("button", name=re.compile("^Take back: ")).click()
    assert page.get_by_text("What you told us you can’t do", exact=True).count() == 0
    page.get_by_role("button", name="About the same to me").click()
    page.get_by_role("button", name="Use the best plan so far").click()
    assert heading(page) == "Your plan"
    page.get_by_role("link", name="My data changed").click()
    page.get_by_label("Net monthly income").fill("lots")
    page.get_by_role("button", name="Save and work out my plan again").click()
    summary = page.get_by_role("alert")
    assert "Please enter a number" in summary.inner_text()
    page.get_by_label("Net monthly income").fill("1,600")
    page.get_by_role("button", name="Save and work out my plan again").click()
    assert page.get_by_text("worked out again with your new data").is_visible()


def test_a_limit_is_added_listed_and_removed(open_page):
    page = open_page()
    begin(page, "Carla")
    first = words(page)
    page.locator("details.cannot summary").first.click()
    page.get_by_role("button", name=re.compile("^I can’t change .* at all$")).first.click()
    limit = page.locator(".limits li span").first.inner_text()
    assert limit.startswith("Leave ")
    feature = limit.removeprefix("Leave ").removesuffix(" as it is")
    assert not any(feature in text.lower() for text in words(page))
    page.get_by_role("button", name=f"Take back: {limit}").click()
    assert words(page) == first


def test_no_plan_says_what_blocks_and_how_to_go_on(open_page):
    page = open_page()
    begin(page, "David")
    for _ in range(14):
        if heading(page) == "We found no plan for you":
            break
        page.locator("details.cannot summary").first.click()
        page.locator("details.cannot[open] button").last.click()
        page.wait_for_load_state()
    assert heading(page) == "We found no plan for you"
    assert page.get_by_role("link", name="Ask a person to look at my case").is_visible()
    page.get_by_role("button", name=re.compile("^Take this back")).first.click()
    assert heading(page) != "We found no plan for you"


def test_own_data_are_checked_as_they_are_typed(open_page):
    page = open_page()
    page.goto("/own")
    age = page.get_by_label("Age")
    age.fill("7")
    age.blur()
    assert page.locator("#error-age").inner_text().endswith("Please enter a number from 18 to 75.")
    assert age.get_attribute("aria-invalid") == "true"
    age.fill("44")
    assert not page.locator("#error-age").is_visible()
    page.get_by_role("button", name="See the decision").click()
    assert page.url.endswith("/own"), "nothing is sent while something is missing"
    assert page.evaluate("document.activeElement.name") == "sex"


def test_a_double_click_answers_once(open_page):
    page = open_page()
    begin(page, "Elif")
    page.get_by_role("button", name="I’d rather do plan A").dblclick()
    page.get_by_text("Question 2", exact=True).wait_for()
    assert "You have answered 1." in page.locator(".progress").inner_text()


def test_at_320_pixels_nothing_runs_off_the_side_and_targets_are_large(open_page):
    page = open_page(viewport={"width": 320, "height": 640}, has_touch=True)

    def check():
        page.wait_for_load_state("load")
        assert page.evaluate("document.documentElement.scrollWidth") <= 320, page.url
        small = page.evaluate(
            """[...document.querySelectorAll('button, summary, .links a, a.button, input, select')]
               .filter(e => e.offsetParent && e.type !== 'hidden')
               .map(e => [e.textContent.trim(), e.getBoundingClientRect().height])
               .filter(([, height]) => height < 43)"""
        )
        assert small == [], page.url

    page.goto("/")
    check()
    page.goto("/own")
    check()
    begin(page, "Farid")
    base = page.url.removesuffix("/now")
    check()
    answer(page)
    check()
    page.goto(base + "/question/1")
    check()
    page.goto(base + "/now")
    if heading(page) != "Your plan":
        page.get_by_role("button", name="Use the best plan so far").click()
        page.get_by_role("heading", name="Your plan", exact=True).wait_for()
    check()
    for path in ("", "/receipt", "/data", "/help", "/delete", "/nothing"):
        page.goto(base + path)
        check()


def test_the_lender_makes_a_link_for_an_applicant(open_page, server):
    page = open_page()
    page.goto("/lender")
    page.get_by_label("Key").fill("wrong")
    page.get_by_role("button", name="Sign in").click()
    assert "not valid" in page.get_by_role("alert").inner_text()
    page.get_by_label("Key").fill(server.key)
    page.get_by_role("button", name="Sign in").click()
    assert heading(page) == "Conversations"
    page.get_by_role("link", name="New link").click()
    page.get_by_label("Your reference (optional)").fill("Case 77")
    for name, value in {"Age": "50", "Children at home": "1", "Time as our customer": "4"}.items():
        page.get_by_label(name, exact=True).fill(value)
    for name, value in {
        "Sex": "female", "Education": "school diploma", "Occupation": "manual work",
        "Work contract": "temporary", "Guarantor": "no",
    }.items():  # fmt: skip
        page.get_by_label(name, exact=True).select_option(value)
    for name, value in {
        "Net monthly income": "1850", "Savings": "900", "Monthly payments on other debts": "210",
        "Use of your card limit": "55", "Overdue payments": "1", "Loan amount": "8000",
        "Loan term": "36",
    }.items():  # fmt: skip
        page.get_by_label(name, exact=True).fill(value)
    page.get_by_role("button", name="Make the link").click()
    link = page.get_by_label("Link", exact=True).input_value()
    person = open_page()
    person.goto(link)
    assert heading(person) == "Your application was not approved"
    page.get_by_role("link", name="Conversations").click()
    row = page.get_by_role("row").filter(has_text="Case 77")
    assert "not opened yet" in row.inner_text()
    person.get_by_role("link", name="Begin").click()
    person.get_by_role("button", name="Use the best plan so far").click()
    page.reload()
    assert "has a plan" in row.inner_text()
    page.get_by_role("link", name="Fairness").click()
    assert heading(page) == "Do all groups fare alike?"
