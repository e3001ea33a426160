"""What a person does on the page, as the browser tests do it."""

from __future__ import annotations

import re


def begin(page, person="Amina"):
    page.goto("/")
    page.get_by_role("button", name=f"Continue as {person}").click()
    page.get_by_role("link", name="Begin").click()
    page.wait_for_url(re.compile(r"/c/[\w-]+/now"))
    return page


def answer(page, letter="A"):
    page.get_by_role("button", name=f"I’d rather do plan {letter}").click()
    page.wait_for_load_state()


def finish(page, letter="A"):
    for _ in range(10):
        if heading(page) == "Your plan":
            return
        answer(page, letter)
    assert heading(page) == "Your plan"


def heading(page):
    return page.locator("h1").inner_text()


def words(page):
    """The steps shown, once the page has some: reading alone does not wait for a page to load."""
    page.locator(".card .words").first.wait_for()
    return page.locator(".card .words").all_inner_texts()
