"""A real service process and a real browser, for the tests of the page."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


def pytest_collection_modifyitems(items):
    for item in items:
        if "tests/browser" in str(item.path).replace(os.sep, "/"):
            item.add_marker(pytest.mark.browser)
            if CHROMIUM is None:
                item.add_marker(
                    pytest.mark.skip(reason="there is no Chromium here; install 'chromium'")
                )


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


class Server:
    """``pear serve --demo`` in a process of its own."""

    def __init__(self, database: str, *options: str) -> None:
        self.port = free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        command = [sys.executable, "-m", "pear", "serve", "--demo", "--database", database]
        # On a busy machine a search takes long: nobody is sent to the waiting page for that.
        command += ["--port", str(self.port), "--searchers", "1", "--patience-seconds", "90"]
        command += ["--search-seconds", "120", *options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.key = ""
        for line in self.process.stdout:
            if b"with the key" in line:
                self.key = line.decode().split()[-1]
                break
        self.wait()

    def wait(self, seconds: float = 280.0) -> None:
        """Until a searcher answers; the first one after an installation is compiled before that."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                with urllib.request.urlopen(self.address + "/readyz", timeout=2) as answer:
                    if answer.status == 200:
                        return
            except OSError:
                time.sleep(0.1)
        raise TimeoutError("the service did not become ready")

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(20)


QUICK = ("--link-per-minute", "10000", "--stranger-per-minute", "10000")


@pytest.fixture(scope="session")
def database(tmp_path_factory):
    """The file in which the service keeps its cases."""
    return tmp_path_factory.mktemp("service") / "pear.db"


@pytest.fixture(scope="session")
def server(database):
    server = Server(f"sqlite:///{database}", *QUICK)
    yield server
    server.stop()


@pytest.fixture(scope="session")
def three_plans(tmp_path_factory):
    """A service that asks about three plans at a time, and has no patience: everybody waits."""
    database = tmp_path_factory.mktemp("three") / "pear.db"
    options = ("--choices", "3", "--patience-seconds", "0.001")
    server = Server(f"sqlite:///{database}", *QUICK, *options)
    yield server
    server.stop()


@pytest.fixture(scope="module")
def chromium():
    """A browser for one file: its event loop must not outlive it."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium, server):
    """Opens pages that fail the test on any request to another host or any script error."""
    contexts = []
    allowed = ("http://127.0.0.1:", "data:", "file:")

    def opened(**settings):
        context = chromium.new_context(base_url=server.address, **settings)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.elsewhere, page.failures = [], []
        page.scripts = settings.get("java_script_enabled", True)
        page.scheme = settings.get("color_scheme", "light")
        page.on(
            "request",
            lambda request: (
                None if request.url.startswith(allowed) else page.elsewhere.append(request.url)
            ),
        )
        page.on("pageerror", lambda error: page.failures.append(str(error)))
        page.on(
            "console",
            lambda message: (
                page.failures.append(message.text)
                if message.type == "error" and "status of 4" not in message.text
                else None
            ),
        )
        return page

    yield opened
    for context in contexts:
        for page in context.pages:
            assert page.elsewhere == []
            assert page.failures == []
        context.close()


RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}

SMALL = """[...document.querySelectorAll('button, summary, .links a, a.button, input, select')]
           .filter(e => e.checkVisibility() && e.type !== 'hidden')
           .map(e => [e.textContent.trim(), e.getBoundingClientRect().height])
           .filter(([, height]) => height < 43)"""


class Inspector:
    """Looks at pages: nothing runs off the side, what is pressed with a finger is large enough,
    and axe finds no violation, once for each kind of page in each language and on each screen.

    axe needs scripts. A page without them is looked at as it was received, in a page with them.
    It looks at the whole page at once: what stands behind the buttons that stay in view is there
    to be scrolled to.
    """

    def __init__(self, chromium, address):
        from axe_playwright_python.sync_playwright import Axe

        self.axe, self.chromium, self.address, self.seen = Axe(), chromium, address, set()

    def __call__(self, page):
        page.wait_for_load_state("load")
        width = page.viewport_size["width"]
        assert page.evaluate("document.documentElement.scrollWidth") <= width, page.url
        assert page.evaluate(SMALL) == [], page.url
        heading = re.sub(r"\d+", "0", page.locator("h1").inner_text())
        kind = (heading, page.locator("details[open]").count(), width)
        if kind not in self.seen:
            self.seen.add(kind)
            found = self._violations(page)
            assert [(item["id"], [n["html"] for n in item["nodes"]]) for item in found] == []

    def _violations(self, page):
        screen = page.viewport_size
        whole = {"width": screen["width"], "height": 4000}
        if page.scripts:
            page.set_viewport_size(whole)
            found = self.axe.run(page, options=RULES).response["violations"]
            page.set_viewport_size(screen)
            return found
        look = {"viewport": whole, "color_scheme": page.scheme, "bypass_csp": True}
        context = self.chromium.new_context(**look)
        try:
            copy = context.new_page()
            copy.goto(self.address + "/static/page.css")
            copy.set_content(page.content())
            copy.wait_for_load_state("load")
            return self.axe.run(copy, options=RULES).response["violations"]
        finally:
            context.close()


@pytest.fixture(scope="module")
def inspect(chromium, server):
    return Inspector(chromium, server.address)
