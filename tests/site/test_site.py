"""The site builds, every link leads somewhere, and nothing is fetched from elsewhere when read."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
LOADED = re.compile(
    r"<(?:script|link|img|iframe|source)\b[^>]*\b(?:src|href)=[\"']?((?:https?:)?//[^\"'> ]+)"
)
CANONICAL = re.compile(r"<link[^>]*rel=[\"']?(?:canonical|alternate)[^>]*>")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("mkdocs", reason="the site is built by mkdocs, of the extra 'docs'")
    pytest.importorskip("mkdocstrings", reason="the reference needs mkdocstrings, extra 'docs'")
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert built.returncode == 0, built.stderr[-3_000:]
    return folder


def pages(site):
    return {path: path.read_text(encoding="utf-8") for path in sorted(site.rglob("*.html"))}


def test_nothing_is_fetched_from_elsewhere(site):
    found = {
        (path.relative_to(site).as_posix(), address)
        for path, text in pages(site).items()
        for address in LOADED.findall(CANONICAL.sub("", text))
    }
    assert found == set()
    for sheet in site.rglob("*.css"):
        assert not re.search(r"(?:@import|url\()\s*[\"']?(?:https?:)?//", sheet.read_text())


def test_the_reference_has_every_public_name(site):
    import pear

    text = "".join(text for path, text in pages(site).items() if "reference" in path.parts)
    documented = set(re.findall(r'id="(?:pear\.[\w.]*\.)?(\w+)"', text))
    assert set(pear.__all__) <= documented
    assert ":class:" not in text
    assert ":func:" not in text


def test_examples_are_code_and_never_text(site):
    reference = {path: text for path, text in pages(site).items() if "reference" in path.parts}
    assert [path.parent.name for path, text in reference.items() if "<blockquote>" in text] == []


def test_every_command_is_described(site):
    from pear.cli.main import COMMANDS

    text = (site / "reference" / "commands" / "index.html").read_text(encoding="utf-8")
    for name in COMMANDS:
        assert f"<code>pear {name}</code>" in text


def test_every_notebook_is_a_page_with_its_output(site):
    notebooks = sorted((ROOT / "docs" / "gallery").glob("*.ipynb"))
    assert notebooks
    for path in notebooks:
        text = (site / "gallery" / path.stem / "index.html").read_text(encoding="utf-8")
        assert "Download this notebook" in text
        assert (site / "gallery" / path.name).exists()
