"""The pictures of the pages in the documentation: each page once, as it is used most.

``python -m tests.browser.pictures docs/images``
"""

from __future__ import annotations

import io
import sqlite3
import sys
import tempfile
from pathlib import Path

from tests.browser.conftest import CHROMIUM, FLAGS, Server
from tests.browser.journey import Person, held
from tests.portfolio.small_problem import PROBLEM
from tests.portfolio.test_audit import portfolio

from pear.portfolio.audit import audit
from pear.portfolio.audit import page as audit_page
from pear.service.store.database import hashed

PHONE = {"viewport": {"width": 375, "height": 720}}
DESKTOP = {"viewport": {"width": 1100, "height": 760}}
COLOURS = 128


class Camera:
    """Takes pictures of a browser's pages into a folder."""

    def __init__(self, browser, address: str, folder: Path) -> None:
        self.browser, self.address, self.folder = browser, address, folder

    def person(self, language: str = "en", **settings) -> Person:
        context = self.browser.new_context(
            base_url=self.address, locale=language, device_scale_factor=1.5, **settings
        )
        context.set_default_timeout(90_000)
        return Person(context.new_page(), language)

    def take(self, person: Person, name: str, *, whole: bool = True) -> None:
        from PIL import Image

        person.page.mouse.move(0, 0)
        image = Image.open(io.BytesIO(person.page.screenshot(full_page=whole)))
        image = image.convert("RGB").quantize(COLOURS)
        image.save(self.folder / f"service-{name}.png", optimize=True)


def of_the_person(camera: Camera) -> None:
    """From the first page to the last, on a phone; the question and the plan on a desktop, too."""
    person = camera.person(**PHONE)
    person.go("/")
    camera.take(person, "welcome")
    person.press("welcome.person", name="Amina")
    base = person.base
    camera.take(person, "start")
    person.press("start.begin")
    camera.take(person, "question", whole=False)
    person.page.locator("details.cannot summary").first.click()
    camera.take(person, "too-much", whole=False)
    person.go(base + "/none")
    camera.take(person, "none")
    person.go(base + "/now")
    person.choose("A")
    person.go(base + "/question/1")
    camera.take(person, "previous")
    person.press("previous.keep")
    person.press("question.best")
    camera.take(person, "plan")
    person.do_next_step()
    camera.take(person, "done")
    for path, name in (
        ("/receipt", "receipt"), ("/data", "data"), ("/help", "help"), ("/delete", "delete"),
        ("/nothing", "error"),
    ):  # fmt: skip
        person.go(base + path)
        camera.take(person, name, whole=path != "/data")
    person.go(base + "/now")
    while person.heading != person("success.title"):
        person.do_next_step()
    camera.take(person, "success")
    person.begin("David").until_no_plan()
    camera.take(person, "no-plan")
    dark = camera.person("de", color_scheme="dark", **PHONE).begin("Ben")
    camera.take(dark, "question-german-dark", whole=False)
    wide = camera.person(**DESKTOP).begin()
    camera.take(wide, "question-wide", whole=False)
    wide.press("question.best")
    camera.take(wide, "plan-wide", whole=False)


def of_the_ends(camera: Camera, database: Path) -> None:
    """A link that has ended, and a place in the queue."""
    person = camera.person(**PHONE).begin("Elif")
    with sqlite3.connect(database, timeout=30) as connection:
        ended = "update conversations set expires_at = 1 where token_hash = ?"
        connection.execute(ended, (hashed(person.base.rpartition("/")[2]),))
    person.go(person.base + "/now")
    camera.take(person, "ended", whole=False)
    busy = Server(f"sqlite:///{tempfile.mkdtemp()}/pear.db", "--patience-seconds", "0.001")
    waiting = Camera(camera.browser, busy.address, camera.folder).person(**PHONE)
    waiting.go("/")
    waiting.press("welcome.person", name="Amina")
    waiting.page.route("**/now", held)
    waiting.page.get_by_role("link", name=waiting("start.begin")).click()
    camera.take(waiting, "waiting", whole=False)
    busy.stop()


def of_the_audit(camera: Camera) -> None:
    """The report of an audit, on a desktop and on a phone."""
    for name, screen in (("audit", DESKTOP), ("audit-phone", PHONE)):
        reader = camera.person(**screen)
        reader.page.set_content(audit_page(audit(PROBLEM, portfolio(800, dearer=1.5, rarer=0.15))))
        camera.take(reader, name, whole=False)


def of_the_lender(camera: Camera, key: str) -> None:
    """The lender's side and the API, on a desktop, with enough cases to compare."""
    applicant = camera.person(**DESKTOP)
    for name in ("Amina", "Ben", "Carla", "Elif", "Farid") * 3:
        applicant.begin(name)
        if applicant.heading == applicant("question.title"):
            applicant.press("question.best")
    lender = camera.person(**DESKTOP)
    lender.go("/lender")
    camera.take(lender, "lender-sign-in", whole=False)
    lender.page.get_by_label("Key").fill(key)
    lender.press("lender.sign_in")
    camera.take(lender, "lender-cases", whole=False)
    lender.page.locator(".cases a").last.click()
    camera.take(lender, "lender-case")
    lender.press("lender.case.link_new")
    camera.take(lender, "lender-link", whole=False)
    lender.go("/lender/new")
    camera.take(lender, "lender-new")
    lender.go("/lender/fairness")
    camera.take(lender, "lender-fairness")
    lender.go("/api")
    lender.page.locator("details.route summary").nth(2).click()
    camera.take(lender, "api", whole=False)


def main(folder: Path) -> None:
    from playwright.sync_api import sync_playwright

    folder.mkdir(parents=True, exist_ok=True)
    database = Path(tempfile.mkdtemp()) / "pear.db"
    server = Server(f"sqlite:///{database}", "--human-link", "tel:+390461000000")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        camera = Camera(browser, server.address, folder)
        of_the_person(camera)
        of_the_lender(camera, server.key)
        of_the_ends(camera, database)
        of_the_audit(camera)
        browser.close()
    server.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
