"""What a person does on the pages, as the browser tests do it, in any language."""

from __future__ import annotations

import re

from pear.elicitation.words import catalogue


class Person:
    """Somebody in front of the pages, who finds what they need by its words.

    ``check`` is called with the page wherever they come to.
    """

    def __init__(self, page, language="en", check=lambda page: None):
        self.page, self.texts, self.check = page, catalogue(language, "pear.service"), check

    def __call__(self, key, /, **values):
        return self.texts(key, **values).replace("\N{NO-BREAK SPACE}", " ")

    def go(self, path):
        self.page.goto(path)
        self.arrive()

    def arrive(self):
        """Look at the page once it is loaded, and once what follows is computed."""
        self.page.wait_for_load_state()
        heading = self.page.locator("h1")
        heading.filter(has_not_text=self("waiting.title")).wait_for(timeout=90_000)
        self.check(self.page)

    def press(self, key, /, **values):
        """A button, or a link that looks like one."""
        words = re.compile("^" + re.escape(self(key, **values)))
        found = self.page.get_by_role("button", name=words)
        found = found.or_(self.page.get_by_role("link", name=words))
        found.first.click()
        self.arrive()

    def open(self, key):
        """Something folded, by its summary."""
        self.page.locator("summary").filter(has_text=self(key)).first.click()

    def back(self):
        self.page.go_back()
        self.arrive()

    @property
    def heading(self):
        return self.page.locator("h1").inner_text().replace("\N{NO-BREAK SPACE}", " ")

    @property
    def base(self):
        """The address of the case."""
        return re.match(r".*/c/[\w-]+", self.page.url)[0]

    def begin(self, name="Amina"):
        self.go("/")
        self.press("welcome.person", name=name)
        self.press("start.begin")
        return self

    def choose(self, letter="A"):
        self.press("question.choose", letter=letter)

    def cells(self):
        """What the plans of the question do, cell by cell."""
        self.page.locator(".compare .value").first.wait_for()
        return self.page.locator(".compare .value").all_inner_texts()

    def steps(self):
        return self.page.locator(".timeline .todo .words").all_inner_texts()

    def finish(self, letter="A"):
        for _ in range(10):
            if self.heading == self("plan.title"):
                return
            self.choose(letter)
        assert self.heading == self("plan.title")

    def cannot(self, grade="last"):
        """The first thing on the page that can be refused, refused."""
        self.page.locator("details.cannot:not(.mark) > summary").first.click()
        buttons = self.page.locator("details.cannot[open] button")
        (buttons.last if grade == "last" else buttons.first).click()
        self.arrive()

    def until_no_plan(self):
        for _ in range(20):
            if self.heading == self("no_plan.title"):
                return
            self.cannot()
        assert self.heading == self("no_plan.title")

    def do_next_step(self):
        self.open("plan.mark")
        self.press("plan.mark_yes")


def held(route):
    """A page that goes on by itself, held so that it can be looked at."""
    answer = route.fetch()
    headers = {name: value for name, value in answer.headers.items() if name != "refresh"}
    route.fulfill(response=answer, headers=headers)
