"""The pictures of the pages in the documentation: each page once, as it is used most.

``python -m tests.browser.pictures docs/images``
"""

from __future__ import annotations

import io
import json
import re
import sqlite3
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from tests.browser.conftest import CHROMIUM, FLAGS, QUICK, Server
from tests.browser.journey import Person, held
from tests.portfolio.small_problem import PROBLEM
from tests.portfolio.test_audit import portfolio

from pear.portfolio.audit import audit
from pear.portfolio.audit import page as audit_page
from pear.service.store.database import hashed

PHONE = {"viewport": {"width": 375, "height": 720}}
DESKTOP = {"viewport": {"width": 1100, "height": 760}}
TALL = {"viewport": {"width": 1100, "height": 1250}}
TALL_PHONE = {"viewport": {"width": 375, "height": 1250}}
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
        if not whole:
            person.page.evaluate("document.activeElement?.blur(); window.scrollTo(0, 0)")
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
    report = replace(audit(PROBLEM, portfolio(800, dearer=1.5, rarer=0.15)), problem="small loans")
    for name, screen in (("audit", TALL), ("audit-phone", TALL_PHONE)):
        reader = camera.person(**screen)
        reader.page.set_content(audit_page(report))
        camera.take(reader, name, whole=False)


PEOPLE = (
    "Amina",
    "Elif",
    "Farid",
    "Ben",
    "Carla",
    "David",
    "Elif",
    "Ben",
    "Farid",
    "Carla",
    "Amina",
)


def cases(camera: Camera, key: str) -> None:
    """Cases that the lender made, each as far as somebody came with it."""
    applicant = camera.person(**DESKTOP)
    request = applicant.page.request
    records = request.get(f"{camera.address}/api/v1/people").json()
    for number, name in enumerate(PEOPLE):
        made = request.post(
            f"{camera.address}/api/v1/conversations",
            headers={"Authorization": f"Bearer {key}"},
            data={"record": records[name], "reference": f"Loan 2026-{118 + 7 * number}"},
        ).json()
        if number % 5 == 4:
            continue
        applicant.go(made["link"])
        applicant.press("start.begin")
        if number % 5 == 3 and applicant.heading == applicant("question.title"):
            applicant.choose("A")
            continue
        if applicant.heading == applicant("question.title"):
            applicant.choose("B")
        if applicant.heading == applicant("question.title"):
            applicant.press("question.best")
        for _ in range(number % 3):
            if applicant.heading == applicant("plan.title"):
                applicant.do_next_step()


def spread(database: Path) -> None:
    """The cases as if they had come over some weeks."""
    with sqlite3.connect(database, timeout=30) as connection:
        order = "select id, stage from conversations order by created_at desc"
        for number, (name, stage) in enumerate(connection.execute(order).fetchall()):
            days = 2 * number + 1, 2 * number + 1 if stage == "new" else number // 2
            dates = "created_at = created_at - 86400 * ?, updated_at = updated_at - 86400 * ?"
            connection.execute(f"update conversations set {dates} where id = ?", (*days, name))


def multiplied(database: Path) -> None:
    """Every plan a dozen times, and those of women somewhat dearer: enough to compare."""
    with sqlite3.connect(database, timeout=30) as connection:
        connection.row_factory = sqlite3.Row
        for row in connection.execute("select * from conversations").fetchall():
            outcome = json.loads(row["outcome"])
            for number in range(12 if outcome.get("success") else 0):
                dearer = 30 if "female" in row["groups"] else 20
                outcome["effort"] = dearer + number % 5
                known = {"id": f"{number}{row['id'][:30]}", "token_hash": f"{number}{row['id']}"}
                copy = {**row, **known, "outcome": json.dumps(outcome)}
                places = ", ".join("?" * len(copy))
                names = ", ".join(f'"{name}"' for name in copy)
                connection.execute(
                    f"insert into conversations ({names}) values ({places})", tuple(copy.values())
                )


def of_the_lender(camera: Camera, key: str, database: Path) -> None:
    """The lender's side and the API, on a desktop, with enough cases to compare."""
    cases(camera, key)
    spread(database)
    lender = camera.person(**DESKTOP)
    lender.go("/lender")
    camera.take(lender, "lender-sign-in", whole=False)
    lender.page.get_by_label("Key").fill(key)
    lender.press("lender.sign_in")
    camera.take(lender, "lender-cases")
    lender.page.set_viewport_size(PHONE["viewport"])
    camera.take(lender, "lender-cases-phone", whole=False)
    lender.page.set_viewport_size(DESKTOP["viewport"])
    on_the_way = lender.page.locator(".cases tr", has_text=re.compile("done: 1 of [2-9]"))
    on_the_way.filter(has=lender.page.locator(".state-plan")).first.locator("a").click()
    camera.take(lender, "lender-case")
    lender.page.set_viewport_size(PHONE["viewport"])
    camera.take(lender, "lender-case-phone")
    lender.page.set_viewport_size(DESKTOP["viewport"])
    lender.press("lender.case.link_new")
    camera.take(lender, "lender-link", whole=False)
    lender.go("/lender/new")
    camera.take(lender, "lender-new")
    for name, screen in (("api", TALL), ("api-phone", TALL_PHONE)):
        programmer = camera.person(**screen)
        programmer.go("/api")
        camera.take(programmer, name, whole=False)


def of_the_fairness(camera: Camera, database: Path) -> None:
    """What the lender sees of groups when there are enough people."""
    multiplied(database)
    server = Server(f"sqlite:///{database}", *QUICK)
    lender = Camera(camera.browser, server.address, camera.folder).person(**DESKTOP)
    lender.go("/lender")
    lender.page.get_by_label("Key").fill(server.key)
    lender.press("lender.sign_in")
    lender.go("/lender/fairness")
    camera.take(lender, "lender-fairness")
    server.stop()


def main(folder: Path) -> None:
    from playwright.sync_api import sync_playwright

    folder.mkdir(parents=True, exist_ok=True)
    database = Path(tempfile.mkdtemp()) / "pear.db"
    server = Server(f"sqlite:///{database}", "--human-link", "tel:+390461000000", *QUICK)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        camera = Camera(browser, server.address, folder)
        of_the_person(camera)
        of_the_ends(camera, database)
        of_the_lender(camera, server.key, database)
        of_the_audit(camera)
        server.stop()
        of_the_fairness(camera, database)
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
