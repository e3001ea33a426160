"""A real service process and a real browser, for the tests of the page."""

from __future__ import annotations

import os
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

    def wait(self, seconds: float = 60.0) -> None:
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


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("service")
    options = ("--link-per-minute", "10000", "--stranger-per-minute", "10000")
    server = Server(f"sqlite:///{folder / 'pear.db'}", *options)
    yield server
    server.stop()


@pytest.fixture
def three_plans(tmp_path):
    """A service that asks about three plans at a time."""
    server = Server(f"sqlite:///{tmp_path / 'pear.db'}", "--choices", "3")
    yield server
    server.stop()


@pytest.fixture(scope="session")
def chromium():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium, server):
    """Opens pages that fail the test on any request to another host or any script error."""
    contexts = []

    def opened(**settings):
        context = chromium.new_context(base_url=server.address, **settings)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.elsewhere, page.failures = [], []
        page.on(
            "request",
            lambda request: (
                None
                if request.url.startswith(("http://127.0.0.1:", "data:"))
                else page.elsewhere.append(request.url)
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
