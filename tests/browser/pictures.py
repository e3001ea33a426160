"""The pictures of the page in the documentation.

``python -m tests.browser.pictures docs/images``
"""

import sys
import tempfile
from pathlib import Path

from tests.browser.conftest import CHROMIUM, FLAGS, Server
from tests.browser.journey import answer, begin, heading


def main(folder: Path) -> None:
    from playwright.sync_api import sync_playwright

    server = Server(f"sqlite:///{tempfile.mkdtemp()}/pear.db")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)

        def opened(**settings):
            return browser.new_context(base_url=server.address, **settings).new_page()

        page = opened(viewport={"width": 390, "height": 780}, device_scale_factor=1.5)
        page.goto("/")
        page.get_by_role("button", name="Continue as Amina").click()
        page.screenshot(path=folder / "service-start.png")
        page.get_by_role("link", name="Begin").click()
        page.locator("h1").wait_for()
        page.screenshot(path=folder / "service-question.png", full_page=True)
        for _ in range(10):
            if heading(page) == "Your plan":
                break
            answer(page)
        shown = {"x": 0, "y": 0, "width": 390, "height": 1560}
        page.screenshot(path=folder / "service-plan.png", clip=shown, full_page=True)
        wide = opened(viewport={"width": 1100, "height": 800})
        begin(wide)
        wide.screenshot(path=folder / "service-question-wide.png", full_page=True)
        browser.close()
    server.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
