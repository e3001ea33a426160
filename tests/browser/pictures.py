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
LONG = {"viewport": {"width": 1100, "height": 2000}}
LONG_PHONE = {"viewport": {"width": 375, "height": 2200}}
COLOURS = 128

LOWEST = """([what, height]) => Math.max(...[...document.querySelectorAll(what)]
    .map(e => e.getBoundingClientRect().bottom).filter(y => y <= height - 16))"""
"""Where the last of some elements ends that is wholly within a window's height."""


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

    def take(self, person: Person, name: str, *, whole: bool = True, until: str = "") -> None:
        """A picture of what is seen, of the whole page, or from its top down to the end of the
        last ``until`` that is within a window's height."""
        from PIL import Image

        person.page.mouse.move(0, 0)
        if not whole:
            person.page.evaluate("document.activeElement?.blur(); window.scrollTo(0, 0)")
        cut = {"full_page": whole}
        if until:
            size = person.page.viewport_size
            low = person.page.evaluate(LOWEST, [until, size["height"]])
            cut = {
                "clip": {
                    "x": 0,
                    "y": 0,
                    "width": size["width"],
                    "height": low + (1 if until.endswith(" tr") else 16),
                }
            }
        image = Image.open(io.BytesIO(person.page.screenshot(**cut)))
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
    found = audit(PROBLEM, portfolio(800, dearer=1.5, rarer=0.15))
    report = replace(found, problem="small loans", model_fingerprint="3f9a41c07be85a36")
    for name, screen in (("audit", TALL), ("audit-phone", LONG_PHONE)):
        reader = camera.person(**screen)
        reader.page.set_content(audit_page(report))
        camera.take(reader, name, until="section, .outcome, main > p")


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
    """The cases as if they had come over some weeks, each with a reference of its own."""
    with sqlite3.connect(database, timeout=30) as connection:
        order = "select id, stage from conversations order by created_at desc"
        found = connection.execute(order).fetchall()
        for number, (name, stage) in enumerate(found):
            days = 2 * number + 1, 2 * number + 1 if stage == "new" else number // 2
            dates = "created_at = created_at - 86400 * ?, updated_at = updated_at - 86400 * ?"
            dates += ", expires_at = expires_at - 86400 * ?, reference = ?"
            reference = f"Loan 2026-{118 + 7 * (len(found) - number)}"
            values = (*days, 2 * number + 1, reference, name)
            connection.execute(f"update conversations set {dates} where id = ?", values)
            when = "update events set at = at - 86400 * ? where conversation_id = ?"
            connection.execute(when, (days[1], name))


def multiplied(database: Path) -> None:
    """Every plan a dozen times, earlier, and those of women somewhat dearer: enough to compare."""
    with sqlite3.connect(database, timeout=30) as connection:
        connection.row_factory = sqlite3.Row
        for place, row in enumerate(connection.execute("select * from conversations").fetchall()):
            outcome = json.loads(row["outcome"])
            for number in range(12 if outcome.get("success") else 0):
                dearer = 24 if "female" in row["groups"] else 20
                outcome["effort"] = dearer + number % 5
                known = {
                    "id": f"{number}{row['id'][:30]}",
                    "token_hash": f"{number}{row['id']}",
                    "reference": f"Loan 2025-{100 + 12 * place + number}",
                    "created_at": row["created_at"] - 86400 * 60,
                    "outcome": json.dumps(outcome),
                }
                copy = {**row, **known}
                places = ", ".join("?" * len(copy))
                names = ", ".join(f'"{name}"' for name in copy)
                connection.execute(
                    f"insert into conversations ({names}) values ({places})", tuple(copy.values())
                )


def of_the_lender(camera: Camera, key: str, database: Path) -> None:
    """The lender's side, on a desktop and on a phone, with enough cases to compare."""
    cases(camera, key)
    spread(database)
    multiplied(database)
    lender = camera.person(**DESKTOP)
    lender.go("/lender")
    camera.take(lender, "lender-sign-in", until="footer.site")
    lender.page.get_by_label("Key").fill(key)
    lender.press("lender.sign_in")
    camera.take(lender, "lender-cases", until=".cases tr")
    lender.page.set_viewport_size(PHONE["viewport"])
    camera.take(lender, "lender-cases-phone", until=".cases tr")
    lender.page.set_viewport_size(DESKTOP["viewport"])
    on_the_way = lender.page.locator(".cases tr", has_text=re.compile("done: 1 of [2-9]"))
    on_the_way.filter(has=lender.page.locator(".state-plan")).first.locator("a").click()
    camera.take(lender, "lender-case")
    lender.page.set_viewport_size(PHONE["viewport"])
    camera.take(lender, "lender-case-phone")
    lender.page.set_viewport_size(DESKTOP["viewport"])
    lender.press("lender.case.link_new")
    camera.take(lender, "lender-link", until=".made")
    lender.go("/lender/new")
    camera.take(lender, "lender-new")
    lender.go("/lender/fairness")
    camera.take(lender, "lender-fairness")


def of_the_reference(camera: Camera) -> None:
    """The API, for people who write programs."""
    for name, screen in (("api", LONG), ("api-phone", LONG_PHONE)):
        programmer = camera.person(**screen)
        programmer.go("/api")
        camera.take(programmer, name, until=".route, pre, .contents")


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
        of_the_reference(camera)
        of_the_audit(camera)
        server.stop()
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
